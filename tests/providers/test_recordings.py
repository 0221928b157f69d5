"""Recorded answers of real services, where the recordings lie beside the checkout."""

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
from wires import Said, ask, collect, decode_pieces, listen, put_together

from deepstrike.errors import (
    BadRequest,
    ContextOverflow,
    ProviderError,
    RateLimited,
    Truncated,
    Unauthorized,
)
from deepstrike.providers.base import Artefact, ModelEvent, ModelInfo, ModelRequest
from deepstrike.providers.compatible import OpenAICompatibleProvider
from deepstrike.providers.dialects.base import Asked, Decoder
from deepstrike.providers.dialects.sse import SseReader
from deepstrike.providers.faults import Faults
from deepstrike.providers.profile import Profile
from deepstrike.providers.redact import Mask
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.tables.servers import SERVERS
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.wire.message import AssistantBlock, CallBlock, Opaque, ResultBlock, Text, Thinking, Turn, UserBlock

SHARED = Path(__file__).parents[3] / "shared"
RECORDINGS = SHARED / "recordings"
SHORT = 4_000


@dataclass(frozen=True)
class Case:
    name: str
    meta: dict[str, Any]
    expected: dict[str, Any]
    body: bytes
    request: dict[str, Any]

    @property
    def streamed(self) -> bool:
        return "event-stream" in self.meta["headers"].get("content-type", "")


def load() -> list[Case]:
    found = []
    for path in sorted(RECORDINGS.glob("*/*/meta.json")):
        meta = json.loads(path.read_text("utf-8"))
        if meta["protocol"] == "openai-chat":
            folder = path.parent
            expected = json.loads((folder / "expected.json").read_text("utf-8"))
            request = json.loads((folder / "request.json").read_text("utf-8"))
            found.append(Case(meta["name"], meta, expected, (folder / "response.raw").read_bytes(), request))
    return found


CASES = load()
STREAMS = [case for case in CASES if case.streamed and case.expected["kind"] == "ok"]
WHOLE = [case for case in CASES if not case.streamed and case.expected["kind"] == "ok"]
REFUSED = {
    "azure/err-429": RateLimited,
    "deepseek/err-400-context": ContextOverflow,
    "deepseek/err-400-image": BadRequest,
    "deepseek/err-400-model": BadRequest,
    "llamacpp/err-400-context": ContextOverflow,
    "openai/err-400-unsupported-param": BadRequest,
    "openai/err-401-key": Unauthorized,
    "openrouter/err-401": Unauthorized,
    "xai/err-400-key": Unauthorized,
}
# Recorded at Ollama's compatible route, whose own profile speaks another dialect.
PROFILES = {"ollama": "vllm"}

pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")


def by_name(case: Case) -> str:
    return case.name


def profile_of(case: Case) -> str:
    vendor = case.meta["provider"]
    assert isinstance(vendor, str)
    return PROFILES.get(vendor, vendor)


def asked(profile: Profile, request: ModelRequest) -> Asked:
    return Asked(request, ModelInfo("any"), profile.name, {}, None, Faults(Mask([]), profile.words))


def decoder_for(case: Case) -> Decoder:
    profile = SERVERS[profile_of(case)]
    return profile.dialect.decoder(asked(profile, ask()))


def check(case: Case, said: Said) -> None:
    expected = case.expected
    assert (said.text, said.thinking) == (expected["text"] + (expected["refusal"] or ""), expected["thinking"])
    calls = [(call.id, call.name, call.arguments_text) for call in said.calls]
    assert calls == [(call["id"], call["name"], call["arguments_raw"]) for call in expected["tool_calls"]]
    assert said.finish == expected["finish_reason"]
    counted = {name: count for name, count in expected["usage"].items() if count is not None}
    if case.meta["provider"] == "xai":  # recorded as sent: its output leaves the reasoning out, ours includes it
        counted["output"] += counted["reasoning"]
    usage = said.usage
    assert {name: getattr(usage, name) for name in counted} == counted
    assert (usage is None) == (not counted)


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


def forms(body: bytes) -> Iterator[bytes]:
    """The same stream with other line ends, a mark in front, no end marker, no last blank line."""
    lf = body.replace(b"\r\n", b"\n")
    yield from (lf, lf.replace(b"\n", b"\r\n"), lf.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + body)
    yield lf.replace(b"data: [DONE]", b"").rstrip(b"\n")
    yield lf.rstrip(b"\n")
    yield lf.replace(b"\n\n", b"\n\n: keep-alive\n\n")
    yield lf.replace(b"data: ", b"data:")


@pytest.mark.parametrize("case", STREAMS, ids=by_name)
def test_given_a_recorded_stream_when_it_is_cut_and_ended_in_every_way_then_it_says_what_was_recorded(
    case: Case,
) -> None:
    for body in forms(case.body):
        check(case, put_together(decode_pieces([body], decoder_for(case))))
    whole = decode_pieces([case.body], decoder_for(case))
    for pieces in cuts(case.body):
        assert decode_pieces(pieces, decoder_for(case)) == whole


@pytest.mark.parametrize("case", STREAMS, ids=by_name)
def test_given_a_recorded_stream_when_it_breaks_off_before_its_finish_then_it_is_truncated(case: Case) -> None:
    words = (b'"finish_reason":"', b'"finish_reason": "')
    finish = min(at for at in (case.body.find(word) for word in words) if at > 0)
    whole = put_together(decode_pieces([case.body], decoder_for(case)))
    for part in (0.25, 0.5, 0.75, 0.99):
        decoder, reader = decoder_for(case), SseReader()
        shown = put_together(decoder.feed(reader.push(case.body[: int(finish * part)])))
        assert whole.text.startswith(shown.text)
        assert whole.thinking.startswith(shown.thinking)
        with pytest.raises(Truncated):
            decode_pieces([case.body[: int(finish * part)]], decoder_for(case))


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


def provider(url: str, profile: str, retry: RetryConfig | None = None) -> OpenAICompatibleProvider:
    retry = retry or RetryConfig(max_retries=0)
    breaker = CircuitBreaker(retry)
    return OpenAICompatibleProvider(
        url, "any", "sk-replay-key", profile=profile, retry_config=retry, circuit_breaker=breaker
    )


@pytest.mark.parametrize("case", STREAMS + WHOLE, ids=by_name)
@pytest.mark.parametrize(
    "options", [{}, {"chunk": "utf8"}, {"chunk": "rand:7", "framing": "close"}, {"chunk": "event"}, {"chunk": "1"}]
)
async def test_given_a_recorded_answer_when_replayed_over_a_socket_then_the_provider_says_what_was_recorded(
    case: Case, options: dict[str, str], replay: Replay
) -> None:
    if len(case.body) > 30_000 and options.get("chunk") in ("utf8", "rand:7", "1"):
        pytest.skip("long; covered without a socket")
    model = provider(replay(case.name, strict=1, id=json.dumps(options).encode().hex(), **options), profile_of(case))
    check(case, put_together(await collect(model.stream(ask()))))
    await model.aclose()


@pytest.mark.parametrize("how", ["fin", "rst", "end"])
@pytest.mark.parametrize("part", [25, 50, 75, 99])
@pytest.mark.parametrize("case", [case for case in STREAMS if len(case.body) < 12_000], ids=by_name)
async def test_given_a_recorded_stream_when_the_connection_is_cut_then_it_is_never_a_finished_answer(
    case: Case, part: int, how: str, replay: Replay
) -> None:
    words = (b'"finish_reason":"', b'"finish_reason": "')
    finish = min(at for at in (case.body.find(word) for word in words) if at > 0)
    model = provider(replay(case.name, cut=finish * part // 100, how=how), profile_of(case))
    with pytest.raises(ProviderError) as caught:
        await collect(model.stream(ask()))
    assert caught.value.code in ("truncated", "unreachable")
    assert caught.value.retryable
    await model.aclose()


@pytest.mark.parametrize(("name", "kind"), REFUSED.items())
async def test_given_a_recorded_refusal_when_replayed_then_it_is_this_error_and_shows_the_services_words(
    name: str, kind: type[ProviderError], replay: Replay
) -> None:
    case = next(case for case in CASES if case.name == name)
    model = provider(replay(name), profile_of(case))
    with pytest.raises(ProviderError) as caught:
        await collect(model.stream(ask()))
    assert type(caught.value) is kind
    assert caught.value.status == case.meta["status"]
    assert case.expected["error"]["message"][:60] in caught.value.message
    assert caught.value.request_id == case.meta["headers"].get("x-request-id")
    await model.aclose()


async def test_given_a_recorded_error_inside_a_stream_when_replayed_then_thinking_is_followed_by_it(
    replay: Replay,
) -> None:
    model = provider(replay("groq/gptoss-tool-failed"), "groq")
    seen: list[ModelEvent] = []
    with pytest.raises(BadRequest, match="did not match schema") as caught:
        await listen(model.stream(ask()), seen)
    assert caught.value.status == 400
    expected = next(case.expected for case in CASES if case.name == "groq/gptoss-tool-failed")
    assert put_together(seen).thinking == expected["thinking"]
    await model.aclose()


async def test_given_failures_before_a_recorded_stream_when_retried_then_the_answer_comes(replay: Replay) -> None:
    url = replay("openai/chat-text", fail="2:azure.err-429", retry=0, retryms=1, drop=1)
    model = provider(url, "openai", RetryConfig(max_retries=3, base_delay=0.001))
    events = await collect(model.stream(ask()))
    assert [type(one).__name__ for one in events[:3]] == ["RetryEvent"] * 3
    case = next(case for case in CASES if case.name == "openai/chat-text")
    check(case, put_together(events[3:]))
    await model.aclose()


def pairs() -> list[tuple[Case, Case]]:
    """Each recorded turn with the one behind it, whose request holds the reply of the first."""
    named = {case.name: case for case in CASES}
    found = []
    for name, case in named.items():
        stem, _, turn = name.rpartition("-t")
        following = named.get(f"{stem}-t{int(turn) + 1}") if turn.isdecimal() else None
        if following is not None and case.streamed and following.request.get("messages"):
            found.append((case, following))
    return found


def reply(events: list[ModelEvent], profile: Profile) -> AssistantBlock:
    """The block that a run makes of these events."""
    said = put_together(events)
    artefacts = [Opaque(one.dialect, one.text) for one in events if isinstance(one, Artefact)]
    calls = [CallBlock(call.id, call.name, call.arguments_text) for call in said.calls]
    spoken = [kind(text) for kind, text in ((Thinking, said.thinking), (Text, said.text)) if text]
    return AssistantBlock((*spoken, *artefacts, *calls), profile.name, "any")


def answer(message: dict[str, Any]) -> Turn:
    """What came back: a tool's result, or the user's next words."""
    content = (Text(message["content"]),)
    return ResultBlock(message["tool_call_id"], "", content) if message["role"] == "tool" else UserBlock(content)


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what means nothing: null and empty fields, the order of an argument's keys."""
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    fields = {name: value for name, value in message.items() if value and name != "tool_calls"}
    return {**fields, "calls": calls}


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair[0].name)
def test_given_a_recorded_reply_when_its_tools_have_run_then_the_next_request_is_the_one_that_was_recorded(
    pair: tuple[Case, Case],
) -> None:
    case, following = pair
    profile = SERVERS[profile_of(case)]
    recorded = following.request["messages"]
    last = max(at for at, message in enumerate(recorded) if message["role"] == "assistant")
    turns: list[Turn] = [UserBlock((Text("goal"),)), reply(decode_pieces([case.body], decoder_for(case)), profile)]
    turns += map(answer, recorded[last + 1 :])
    thinks = following.request.get("thinking", {}).get("type") != "disabled"
    request = ModelRequest("", "", turns, (), {} if thinks else {"enable_thinking": False})
    sent = json.loads(profile.dialect.encode(asked(profile, request)))["messages"]
    assert [plain(one) for one in sent[1:]] == [plain(one) for one in recorded[last:]]
