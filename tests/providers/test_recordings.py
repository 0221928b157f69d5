"""Every recorded exchange through the public provider of its service, where the recordings lie beside the checkout."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from recorded import CASES, NATIVE, OURS, RECORDINGS, Case, Replay, decode_pieces, named, provider, replaying
from wires import ask, collect, listen, put_together

from deepstrike.errors import (
    BadRequest,
    ContextOverflow,
    ProviderError,
    RateLimited,
    Truncated,
    Unauthorized,
)
from deepstrike.providers.retry import RetryConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.providers.base import ModelEvent

STREAMS = [case for case in OURS if case.streamed]
WHOLE = [case for case in OURS if case.whole]
REFUSED = {
    "anthropic/err-400-binding-system": BadRequest,
    "anthropic/err-401-key": Unauthorized,
    "anthropic/err-404-model": BadRequest,
    "azure/err-429": RateLimited,
    "deepseek/err-400-context": ContextOverflow,
    "deepseek/err-400-image": BadRequest,
    "deepseek/err-400-model": BadRequest,
    "gemini/err-404-model": BadRequest,
    "llamacpp/err-400-context": ContextOverflow,
    "ollama/cloud-err-401": Unauthorized,
    "openai/err-400-context": ContextOverflow,
    "openai/err-400-unsupported-param": BadRequest,
    "openai/err-401-key": Unauthorized,
    "openrouter/err-401": Unauthorized,
    "xai/err-400-key": Unauthorized,
}
FAILED_INSIDE = "groq/gptoss-tool-failed"
NOT_OURS = {
    "qwen/native-cumulative",
    "qwen/native-err-401",
    "qwen/native-json",
    "qwen/native-message-text",
    "qwen/native-structured-toolcall",
    "qwen/native-tool",
}
SHORT, LONG = 2_500, 20_000
OPTIONS: list[dict[str, str]] = [
    {},
    {"chunk": "1"},
    {"chunk": "utf8"},
    {"chunk": "event"},
    {"chunk": "rand:7", "framing": "close"},
]
SLOW = ("1", "utf8", "rand:7")

pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")
replay = pytest.fixture(scope="module")(replaying)


def test_given_the_index_of_recordings_when_the_tests_are_counted_then_each_is_asked_for_or_of_a_wire_not_built() -> (
    None
):
    index = [entry["name"] for entry in json.loads((RECORDINGS / "index.json").read_text("utf-8"))]
    tested = [*(case.name for case in STREAMS + WHOLE), *REFUSED, FAILED_INSIDE]
    assert sorted([*tested, *NOT_OURS]) == sorted(index)
    assert {case.name for case in CASES if case.protocol == NATIVE} == NOT_OURS


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


def forms(case: Case) -> Iterator[bytes]:
    """The same stream with other line ends, a mark in front, no end marker, no last blank line, signs of life."""
    lf = case.body.replace(b"\r\n", b"\n")
    yield from (lf, lf.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + case.body, lf.rstrip(b"\n"))
    if case.protocol == "ollama":
        yield lf.replace(b"\n", b"\n\n")
        return
    yield lf.replace(b"\n", b"\r")
    yield lf.replace(b"data: [DONE]", b"").rstrip(b"\n")
    yield lf.replace(b"\n\n", b"\n\n: keep-alive\n\n")
    yield lf.replace(b"data: ", b"data:")


@pytest.mark.parametrize("case", STREAMS, ids=str)
def test_given_a_recorded_stream_when_it_is_cut_and_ended_in_every_way_then_it_says_what_was_recorded(
    case: Case,
) -> None:
    whole = decode_pieces(case, [case.body])
    assert case.said_by(put_together(whole)) == case.says()
    for body in forms(case):
        assert case.said_by(put_together(decode_pieces(case, [body]))) == case.says()
    for pieces in cuts(case.body):
        assert decode_pieces(case, pieces) == whole


@pytest.mark.parametrize("case", STREAMS, ids=str)
def test_given_a_recorded_stream_when_its_bytes_end_before_its_finish_then_it_is_truncated(case: Case) -> None:
    for percent in (1, 25, 50, 75, 99):
        with pytest.raises(Truncated):
            decode_pieces(case, [case.body[: case.finished_at * percent // 100]])


def asked_for() -> Iterator[tuple[Case, dict[str, str]]]:
    """Every good answer in every way; in small pieces the long ones are read without a socket, above."""
    for case in STREAMS + WHOLE:
        yield from ((case, way) for way in OPTIONS if len(case.body) <= LONG or way.get("chunk") not in SLOW)


@pytest.mark.parametrize(("case", "options"), list(asked_for()), ids=str)
async def test_given_a_recorded_answer_when_replayed_over_a_socket_then_the_provider_says_what_was_recorded(
    case: Case, options: dict[str, str], replay: Replay
) -> None:
    model = provider(case, replay.url(case.name, strict=1, **options))
    said = put_together(await collect(model.stream(ask())))
    await model.aclose()
    assert case.said_by(said) == case.says()


@pytest.mark.parametrize("how", ["fin", "rst", "end"])
@pytest.mark.parametrize("case", STREAMS, ids=str)
async def test_given_a_recorded_stream_when_the_connection_is_cut_then_it_is_a_prefix_and_never_an_answer(
    case: Case, how: str, replay: Replay
) -> None:
    for percent in (25, 50, 75, 99):
        seen: list[ModelEvent] = []
        model = provider(case, replay.url(case.name, cut=case.finished_at * percent // 100, how=how))
        with pytest.raises(ProviderError) as caught:
            await listen(model.stream(ask()), seen)
        await model.aclose()
        assert (caught.value.code in ("truncated", "unreachable"), caught.value.retryable) == (True, True)
        said = put_together(seen)
        assert (said.calls, said.finish) == ((), None)
        assert str(case.says()["text"]).startswith(said.text)
        assert str(case.says()["thinking"]).startswith(said.thinking)


@pytest.mark.parametrize(("name", "kind"), REFUSED.items())
async def test_given_a_recorded_refusal_when_replayed_then_it_is_this_error_and_shows_the_services_words(
    name: str, kind: type[ProviderError], replay: Replay
) -> None:
    case = named(name)
    model = provider(case, replay.url(name))
    with pytest.raises(ProviderError) as caught:
        await collect(model.stream(ask()))
    await model.aclose()
    headers = case.meta["headers"]
    told = (type(caught.value), caught.value.status, caught.value.request_id)
    assert told == (kind, case.meta["status"], headers.get("x-request-id") or headers.get("request-id"))
    assert case.expected["error"]["message"][:60] in caught.value.message


async def test_given_a_recorded_error_inside_a_stream_when_replayed_then_thinking_is_followed_by_it(
    replay: Replay,
) -> None:
    case = named(FAILED_INSIDE)
    model = provider(case, replay.url(case.name))
    seen: list[ModelEvent] = []
    with pytest.raises(BadRequest, match="did not match schema") as caught:
        await listen(model.stream(ask()), seen)
    await model.aclose()
    assert caught.value.status == 400
    assert put_together(seen).thinking == case.expected["thinking"]


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("openai/chat-text", "2:azure.err-429"),
        ("anthropic/text", "2:529"),
        ("openai-responses/tools-t1", "2:503"),
        ("gemini/text", "2:503"),
        ("ollama/thinking-tool-t1", "2:503"),
    ],
)
async def test_given_failures_before_a_recorded_stream_when_retried_then_the_answer_comes(
    name: str, failure: str, replay: Replay
) -> None:
    case = named(name)
    url = replay.url(name, fail=failure, retryms=1, drop=1)
    model = provider(case, url, retry=RetryConfig(max_retries=3, base_delay=0.001))
    events = await collect(model.stream(ask()))
    await model.aclose()
    assert [type(one).__name__ for one in events[:3]] == ["RetryEvent"] * 3
    assert case.said_by(put_together(events[3:])) == case.says()
