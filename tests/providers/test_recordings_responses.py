"""Recorded answers of OpenAI's Responses API, where the recordings lie beside the checkout."""

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
from responses_wires import SOURCE, decode_pieces
from wires import Said, ask, collect, listen, put_together

from deepstrike.errors import ContextOverflow, ProviderError, Truncated
from deepstrike.providers.base import Artefact, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import TextDelta
from deepstrike.wire.message import AssistantBlock, CallBlock, Opaque, ResultBlock, Text, UserBlock

SHARED = Path(__file__).parents[3] / "shared"
RECORDINGS = SHARED / "recordings"


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    request: dict[str, Any]
    expected: dict[str, Any]
    body: bytes

    @property
    def end(self) -> int:
        """Where the last event begins."""
        return max(self.body.rfind(b'"type":"response.' + kind) for kind in (b"completed", b"incomplete"))


def load() -> list[Case]:
    found = []
    for path in sorted(RECORDINGS.glob("*/*/meta.json")):
        meta = json.loads(path.read_text("utf-8"))
        if meta["protocol"] == "openai-responses":
            folder = path.parent
            request, expected = (
                json.loads((folder / f"{one}.json").read_text("utf-8")) for one in ("request", "expected")
            )
            found.append(Case(meta["name"], meta["model"], request, expected, (folder / "response.raw").read_bytes()))
    return found


FOUND = load()
CASES = [case for case in FOUND if case.expected["kind"] == "ok"]
by_number = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")


def check(case: Case, said: Said) -> None:
    expected = case.expected
    assert (said.text, said.thinking) == (expected["text"] + (expected["refusal"] or ""), expected["thinking"])
    calls = [(call.id, call.name, call.arguments_text) for call in said.calls]
    assert calls == [(call["id"], call["name"], call["arguments_raw"]) for call in expected["tool_calls"]]
    assert said.finish == expected["finish_reason"]
    counted = {name: count for name, count in expected["usage"].items() if count is not None}
    assert {name: getattr(said.usage, name) for name in counted} == counted


@by_number
def test_given_a_recorded_stream_when_it_is_cut_in_every_way_then_it_says_what_was_recorded(case: Case) -> None:
    body = case.body
    whole = decode_pieces([body])
    check(case, put_together(whole))
    assert decode_pieces(body[i : i + 1] for i in range(len(body))) == whole
    for seed in range(5):
        chance, pieces, start = random.Random(seed), [], 0
        while start < len(body):
            size = chance.randint(1, 400)
            pieces.append(body[start : start + size])
            start += size
        assert decode_pieces(pieces) == whole
    for form in (body.replace(b"\n", b"\r\n"), body.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + body, body.rstrip(b"\n")):
        assert decode_pieces([form]) == whole


@by_number
def test_given_a_recorded_stream_when_it_breaks_off_before_its_last_event_then_it_is_truncated(case: Case) -> None:
    for part in (0.25, 0.5, 0.75, 0.99):
        with pytest.raises(Truncated):
            decode_pieces([case.body[: int(case.end * part)]])


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
            return f"{root}/~{chosen}/{name}/v1" if chosen else f"{root}/{name}/v1"

        yield url
        server.terminate()


def provider(url: str, model: str = "any") -> OpenAIProvider:
    once = RetryConfig(max_retries=0)
    breaker = CircuitBreaker(once)
    return OpenAIProvider(
        "sk-replay-key", model, api="responses", base_url=url, retry_config=once, circuit_breaker=breaker
    )


@by_number
@pytest.mark.parametrize("options", [{}, {"chunk": "1"}, {"chunk": "utf8"}, {"chunk": "rand:7", "framing": "close"}])
async def test_given_a_recorded_answer_when_replayed_over_a_socket_then_the_provider_says_what_was_recorded(
    case: Case, options: dict[str, str], replay: Replay
) -> None:
    if len(case.body) > 20_000 and options.get("chunk") in ("1", "utf8"):
        pytest.skip("long; covered without a socket")
    model = provider(replay(case.name, strict=1, id=json.dumps(options).encode().hex(), **options))
    check(case, put_together(await collect(model.stream(ask()))))
    await model.aclose()


@by_number
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("part", [25, 50, 75, 99])
async def test_given_a_recorded_stream_when_the_connection_is_cut_then_it_is_never_a_finished_answer(
    case: Case, part: int, how: str, replay: Replay
) -> None:
    model = provider(replay(case.name, cut=case.end * part // 100, how=how))
    seen: list[ModelEvent] = []
    with pytest.raises(ProviderError) as caught:
        await listen(model.stream(ask()), seen)
    assert caught.value.code in ("truncated", "unreachable")
    shown = case.expected["text"] + (case.expected["refusal"] or "")
    assert shown.startswith("".join(one.delta for one in seen if isinstance(one, TextDelta)))
    assert not any(isinstance(one, ToolCall) for one in seen)
    await model.aclose()


async def test_given_a_recorded_overflow_when_replayed_then_it_is_one_and_shows_the_services_words(
    replay: Replay,
) -> None:
    refused = [case for case in FOUND if case.expected["kind"] != "ok"]
    assert [case.name for case in refused] == ["openai/err-400-context"]
    model = provider(replay(refused[0].name))
    with pytest.raises(ContextOverflow) as caught:
        await collect(model.stream(ask()))
    assert caught.value.status == 400
    assert refused[0].expected["error"]["message"][:60] in caught.value.message
    await model.aclose()


def block_of(case: Case) -> AssistantBlock:
    """The block that a recorded answer becomes, as the host puts it together."""
    parts: list[Text | CallBlock | Opaque] = []
    for event in decode_pieces([case.body]):
        if isinstance(event, TextDelta):
            last = parts[-1] if parts else None
            if isinstance(last, Text):
                parts[-1] = Text(last.text + event.delta)
            else:
                parts.append(Text(event.delta))
        elif isinstance(event, ToolCall):
            parts.append(CallBlock(event.id, event.name, event.arguments_text))
        elif isinstance(event, Artefact):
            parts.append(Opaque(event.dialect, event.text))
    return AssistantBlock(tuple(parts), SOURCE, case.model)


def essence(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what clients add or leave out as they like. Recorded clients straighten curly quotes."""
    content = item.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    kept = {key: value for key, value in item.items() if key not in ("id", "status", "type", "content")}
    kind = item.get("type", "message")
    texts = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2019": "'"})
    return {**kept, "type": kind, "content": content.translate(texts) if content else None}


FLOWS = [case for case in CASES if case.name.endswith("-t1")]


@pytest.mark.parametrize("first", FLOWS, ids=[case.name for case in FLOWS])
async def test_given_a_recorded_tool_turn_when_its_results_go_back_then_the_request_is_the_recorded_one(
    first: Case, replay: Replay
) -> None:
    second = next(case for case in CASES if case.name == first.name.removesuffix("1") + "2")
    block, recorded = block_of(first), second.request["input"]
    outputs = {item["call_id"]: item["output"] for item in recorded if item.get("type") == "function_call_output"}
    calls = [part for part in block.parts if isinstance(part, CallBlock)]
    results = [ResultBlock(call.id, call.name, (Text(outputs[call.id]),)) for call in calls]
    goal = UserBlock((Text(essence(recorded[0])["content"]),))
    request = ModelRequest(second.request.get("instructions", ""), "", (goal, block, *results), (), {})
    model = provider(replay(second.name), first.model)
    sent = json.loads(model._question(request).body)
    assert [essence(item) for item in sent["input"]] == [essence(item) for item in recorded]
    assert sent.get("instructions") == second.request.get("instructions")
    check(second, put_together(await collect(model.stream(request))))
    await model.aclose()
