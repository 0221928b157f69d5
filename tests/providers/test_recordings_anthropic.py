"""Recorded answers of Anthropic, where the recordings lie beside the checkout."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anthropic_wire import SOURCE, decode_pieces, new_decoder
from wires import Said, ask, collect, listen, put_together

from deepstrike.errors import BadRequest, ProviderError, Truncated, Unauthorized
from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.base import Artefact, Memo, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import (
    AssistantBlock,
    AssistantPart,
    CallBlock,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    Turn,
    UserBlock,
)

SHARED = Path(__file__).parents[3] / "shared"
RECORDINGS = SHARED / "recordings"
SHORT = 2_500


@dataclass(frozen=True)
class Case:
    name: str
    meta: dict[str, Any]
    expected: dict[str, Any]
    request: dict[str, Any]
    body: bytes

    @property
    def answer(self) -> bytes:
        """The body up to the first sign that it is whole."""
        return self.body[: self.body.index(b"event: message_delta")]


def load() -> list[Case]:
    found = []
    for path in sorted(RECORDINGS.glob("*/*/meta.json")):
        meta = json.loads(path.read_text("utf-8"))
        if meta["protocol"] == "anthropic":
            expected, request = (
                json.loads((path.parent / f"{one}.json").read_text("utf-8")) for one in ("expected", "request")
            )
            found.append(Case(meta["name"], meta, expected, request, (path.parent / "response.raw").read_bytes()))
    return found


CASES = load()
GOOD = [case for case in CASES if case.expected["kind"] == "ok"]
STREAMS = [case for case in GOOD if case.expected["streamed"]]
FLOWS = sorted({case.meta["flow"] for case in STREAMS if "flow" in case.meta})
REFUSED = {
    "anthropic/err-400-binding-system": BadRequest,
    "anthropic/err-401-key": Unauthorized,
    "anthropic/err-404-model": BadRequest,
}

pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")


def by_name(case: Case) -> str:
    return case.name


def check(case: Case, said: Said) -> None:
    expected = case.expected
    assert (said.text, said.thinking) == (expected["text"], expected["thinking"])
    calls = [(call.id, call.name, call.arguments_text) for call in said.calls]
    assert calls == [(call["id"], call["name"], call["arguments_raw"]) for call in expected["tool_calls"]]
    assert said.finish == expected["finish_reason"]
    names = ("input", "output", "cached", "cache_write", "reasoning")
    counted = {name: expected["usage"][name] or 0 for name in names}
    assert {name: getattr(said.usage, name) for name in names} == counted


def cuts(body: bytes) -> Iterator[list[bytes]]:
    """The body byte by byte, cut in two at every byte if it is short, and in pieces at random."""
    yield [body[i : i + 1] for i in range(len(body))]
    if len(body) <= SHORT:
        yield from ([body[:cut], body[cut:]] for cut in range(1, len(body)))
    for seed in range(10):
        chance, pieces, start = random.Random(seed), [], 0
        while start < len(body):
            size = chance.randint(1, 400)
            pieces.append(body[start : start + size])
            start += size
        yield pieces


@pytest.mark.parametrize("case", STREAMS, ids=by_name)
def test_given_a_recorded_stream_when_it_is_cut_and_ended_in_every_way_then_it_says_what_was_recorded(
    case: Case,
) -> None:
    whole = decode_pieces([case.body])
    check(case, put_together(whole))
    for pieces in cuts(case.body):
        assert decode_pieces(pieces) == whole
    for body in (case.body.replace(b"\n", b"\r\n"), case.body.replace(b"\n", b"\r"), case.body.rstrip(b"\n")):
        assert decode_pieces([body]) == whole
    assert decode_pieces([case.body.removesuffix(b'data: {"type":"message_stop"}\n\n')]) == whole


@pytest.mark.parametrize("case", STREAMS, ids=by_name)
def test_given_a_recorded_stream_when_it_breaks_off_before_its_stop_reason_then_it_is_truncated(case: Case) -> None:
    for part in (0.25, 0.5, 0.75, 0.99, 1.0):
        decoder = new_decoder()
        with pytest.raises(Truncated):
            decode_pieces([case.answer[: int(len(case.answer) * part)]], decoder)
        assert not decoder.finished


Replay = Callable[..., str]
"""Gives the base URL of a recording, with the replay server's options."""


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    program = [sys.executable, str(SHARED / "tools" / "replay_server.py"), "--port", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        root = server.stdout.readline().split()[-1]

        def url(name: str, **options: object) -> str:
            chosen = ",".join(f"{key}={value}" for key, value in options.items())
            return f"{root}/~{chosen}/{name}" if chosen else f"{root}/{name}"

        yield url
        server.terminate()


def provider(url: str, retry: RetryConfig | None = None, model: str = "any") -> AnthropicProvider:
    retry = retry or RetryConfig(max_retries=0)
    return AnthropicProvider(
        "sk-ant-replay-key", model, base_url=url, retry_config=retry, circuit_breaker=CircuitBreaker(retry)
    )


@pytest.mark.parametrize("case", GOOD, ids=by_name)
@pytest.mark.parametrize(
    "options",
    [{}, {"chunk": "1"}, {"chunk": "utf8"}, {"chunk": "rand:7", "framing": "close"}, {"eol": "crlf", "bom": "1"}],
    ids=str,
)
async def test_given_a_recorded_answer_when_replayed_over_a_socket_then_the_provider_says_what_was_recorded(
    case: Case, options: dict[str, str], replay: Replay
) -> None:
    if len(case.body) > 8_000 and options.get("chunk") in ("1", "rand:7"):
        pytest.skip("long; covered without a socket")
    if not case.expected["streamed"] and "eol" in options:
        pytest.skip("no stream")
    model = provider(replay(case.name, strict=1, id=json.dumps(options).encode().hex(), **options))
    check(case, put_together(await collect(model.stream(ask()))))
    await model.aclose()


@pytest.mark.parametrize("how", ["fin", "rst", "end"])
@pytest.mark.parametrize("part", [25, 50, 75, 99])
@pytest.mark.parametrize("case", [case for case in STREAMS if len(case.body) < 12_000], ids=by_name)
async def test_given_a_recorded_stream_when_the_connection_is_cut_then_it_is_never_a_finished_answer(
    case: Case, part: int, how: str, replay: Replay
) -> None:
    model = provider(replay(case.name, cut=len(case.answer) * part // 100, how=how))
    seen: list[ModelEvent] = []
    with pytest.raises(ProviderError) as caught:
        await listen(model.stream(ask()), seen)
    assert caught.value.code in ("truncated", "unreachable")
    said = put_together(seen)
    assert (said.finish, said.calls) == (None, ())
    assert case.expected["text"].startswith(said.text)
    assert case.expected["thinking"].startswith(said.thinking)
    await model.aclose()


@pytest.mark.parametrize(("name", "kind"), REFUSED.items())
async def test_given_a_recorded_refusal_when_replayed_then_it_is_this_error_and_shows_the_services_words(
    name: str, kind: type[ProviderError], replay: Replay
) -> None:
    model = provider(replay(name), RetryConfig(max_retries=3, base_delay=0.001), "claude-opus-5-5")
    with pytest.raises(ProviderError) as caught:
        await collect(model.stream(ask()))
    case = next(case for case in CASES if case.name == name)
    assert type(caught.value) is kind
    assert caught.value.status == case.meta["status"]
    assert case.expected["error"]["message"][:300] in caught.value.message
    assert caught.value.request_id == case.meta["headers"].get("request-id")
    assert not caught.value.retryable
    await model.aclose()


async def test_given_failures_before_a_recorded_stream_when_retried_then_the_answer_comes(replay: Replay) -> None:
    url = replay("anthropic/text", fail="2:529", retryms=1, drop=1)
    model = provider(url, RetryConfig(max_retries=3, base_delay=0.001))
    events = await collect(model.stream(ask()))
    assert [type(one).__name__ for one in events[:3]] == ["RetryEvent"] * 3
    check(next(case for case in CASES if case.name == "anthropic/text"), put_together(events[3:]))
    await model.aclose()


def parts_of(events: list[ModelEvent]) -> tuple[AssistantPart, ...]:
    """What a run keeps of an answer."""
    parts: list[AssistantPart] = []
    for event in events:
        last = parts[-1] if parts else None
        if isinstance(event, TextDelta):
            if isinstance(last, Text):
                parts[-1] = Text(last.text + event.delta)
            else:
                parts.append(Text(event.delta))
        elif isinstance(event, ThinkingDelta):
            parts.append(Thinking(event.delta))
        elif isinstance(event, Artefact):
            parts.append(Opaque(event.dialect, event.text))
        elif isinstance(event, ToolCall):
            parts.append(CallBlock(event.id, event.name, event.arguments_text))
    return tuple(parts)


def user_turns(message: dict[str, Any]) -> list[Turn]:
    content = message["content"]
    if isinstance(content, str):
        return [UserBlock((Text(content),))]
    turns: list[Turn] = []
    for block in content:
        if block["type"] == "tool_result":
            inner = block["content"]
            texts = [inner] if isinstance(inner, str) else [one["text"] for one in inner]
            turns.append(ResultBlock(block["tool_use_id"], "", tuple(Text(one) for one in texts)))
        else:
            turns.append(UserBlock((Text(block["text"]),)))
    return turns


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages in one form: texts as blocks, no breakpoints, no word on who called a tool."""
    found = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kept = []
        for block in blocks:
            one = {name: value for name, value in block.items() if name not in ("cache_control", "caller")}
            if isinstance(one.get("content"), str):
                one["content"] = [{"type": "text", "text": one["content"]}]
            kept.append(one)
        found.append({"role": message["role"], "content": kept})
    return found


@pytest.mark.parametrize("flow", FLOWS)
async def test_given_a_recorded_conversation_when_replayed_then_every_request_is_the_recorded_one(
    flow: str, replay: Replay
) -> None:
    cases = sorted((case for case in STREAMS if case.meta.get("flow") == flow), key=lambda case: case.meta["turn"])
    first = cases[0].request
    system = first.get("system", "")
    system = system if isinstance(system, str) else system[0]["text"]
    tools = tuple(
        ToolSpec(tool["name"], tool["description"], json.dumps(tool["input_schema"])) for tool in first.get("tools", ())
    )
    memo, turns = Memo(), list[Turn]()
    for case in cases:
        asked = user_turns(case.request["messages"][-1])
        if len(case.request["messages"]) == 1:  # a conversation that begins anew in every recording
            memo, turns = Memo(), []
        turns += asked
        model = provider(replay(case.name), model=first["model"])
        request = ModelRequest(system, "", turns, tools, {}, memo=memo)
        events = await collect(model.stream(request))
        await model.aclose()
        sent = json.loads(memo_body(memo))
        assert plain(sent) == plain(case.request["messages"])
        turns.append(AssistantBlock(parts_of(events), SOURCE, first["model"]))
    assert {tool["name"] for tool in first.get("tools", ())} == {tool.name for tool in tools}


def memo_body(memo: Memo) -> bytes:
    return b"[%b]" % bytes(memo.body)
