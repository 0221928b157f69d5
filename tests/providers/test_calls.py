"""A whole call under a manual clock and without a socket: retries, limits, breaker, slots."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from wires import (
    DONE,
    RESET,
    FakeAnswer,
    FakeTransport,
    Said,
    collect,
    error,
    event,
    good,
    listen,
    put_together,
    stream,
)

from deepstrike.errors import (
    BadRequest,
    CircuitOpen,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Stalled,
    Truncated,
    Unauthorized,
    Unreachable,
)
from deepstrike.providers.base import Finish, ModelEvent
from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.dialects.sse import SseReader
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.base import Timeouts
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.providers.transport.call import Question, call
from deepstrike.providers.transport.endpoint import Endpoint
from deepstrike.providers.transport.slots import Slots
from deepstrike.stream import RetryEvent, TextDelta, ThinkingDelta
from deepstrike.testing.clock import ManualClock
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

FAULTS = Faults(Mask(["sk-secret-1"]))
ALWAYS = RetryConfig(max_retries=2, base_delay=1.0)
NEVER = RetryConfig(max_retries=0)
FINE: list[ModelEvent] = [TextDelta("fine"), Finish("stop")]


def endpoint(
    answers: Sequence[FakeAnswer | Exception | None],
    retry: RetryConfig = ALWAYS,
    *,
    timeouts: Timeouts | None = None,
    slots: Slots | None = None,
) -> Endpoint:
    return Endpoint(
        "http://model.test/v1",
        FakeTransport(answers),
        timeouts or Timeouts(),
        retry,
        CircuitBreaker(retry),
        slots,
        FAULTS,
    )


def ask(place: Endpoint) -> AsyncGenerator[ModelEvent, None]:
    return call(lambda: Question(place, b"{}", lambda: (SseReader(), ChatDecoder({}, FAULTS))))


def changes(events: Sequence[ModelEvent]) -> list[str]:
    """What these events say: a notice by its code, text and finish by themselves."""
    said = []
    for one in events:
        assert isinstance(one, Notice | TextDelta | Finish)
        said.append(one.code if isinstance(one, Notice) else one.delta if isinstance(one, TextDelta) else one.reason)
    return said


def requests(place: Endpoint) -> int:
    assert isinstance(place.transport, FakeTransport)
    return len(place.transport.bodies)


async def by_the_clock(clock: ManualClock, place: Endpoint, seconds: float = 600) -> list[ModelEvent]:
    """All events of a call while the clock is moved on as far as the call needs."""
    task = asyncio.ensure_future(collect(ask(place)))
    await clock.advance(seconds)
    return await task


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_given_a_passing_failure_when_retried_then_the_answer_comes(status: int) -> None:
    with ManualClock() as clock:
        place = endpoint([error(status, {"retry-after": "2"}), good()])
        events = await by_the_clock(clock, place)
    assert events[1:] == FINE
    assert isinstance(events[0], RetryEvent)
    assert (events[0].attempt, events[0].delay_ms) == (1, 2000)
    assert str(status) in events[0].reason


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, None, BadRequest),
        (401, None, Unauthorized),
        (403, None, Unauthorized),
        (404, "model_not_found", BadRequest),
        (413, None, BadRequest),
        (422, None, BadRequest),
        (402, None, QuotaExhausted),
        (429, "insufficient_quota", QuotaExhausted),
        (429, "exceeded_current_quota_error", QuotaExhausted),
    ],
)
async def test_given_a_lasting_failure_when_it_comes_then_it_is_raised_at_once(
    status: int, code: str | None, kind: type[ProviderError]
) -> None:
    place = endpoint([error(status, {"x-request-id": "req-7"}, code)])
    with pytest.raises(kind, match=f"refused with {status}") as caught:
        await collect(ask(place))
    assert (caught.value.status, caught.value.request_id, requests(place)) == (status, "req-7", 1)


async def test_given_failures_without_end_when_retried_then_the_schedule_is_exact_and_the_number_is_total() -> None:
    with ManualClock() as clock:
        place = endpoint([error(503) for _ in range(9)])
        begin = clock.now_ms()
        heard: list[ModelEvent] = []

        async def run() -> int:
            with pytest.raises(Overloaded):
                await listen(ask(place), heard)
            return clock.now_ms() - begin

        task = asyncio.ensure_future(run())
        await clock.advance(60)
        took = await task
    seen = [one for one in heard if isinstance(one, RetryEvent)]
    assert requests(place) == 3
    assert [one.attempt for one in seen] == [1, 2]
    assert 750 <= seen[0].delay_ms <= 1000
    assert 1500 <= seen[1].delay_ms <= 2000
    assert abs(took - sum(one.delay_ms for one in seen)) <= 2


async def test_given_no_retries_when_a_try_fails_then_there_is_one_request() -> None:
    place = endpoint([error(503)], RetryConfig(max_retries=0))
    with pytest.raises(Overloaded):
        await collect(ask(place))
    assert requests(place) == 1


async def test_given_a_hint_of_minutes_when_it_comes_then_the_call_ends_instead_of_waiting() -> None:
    place = endpoint([error(429, {"retry-after": "121"}), good()])
    with pytest.raises(RateLimited):
        await collect(ask(place))
    assert requests(place) == 1


@pytest.mark.parametrize(("status", "word", "tries"), [(400, "true", 2), (503, "false", 1)])
async def test_given_the_servers_plain_word_when_it_says_whether_to_retry_then_it_rules(
    status: int, word: str, tries: int
) -> None:
    with ManualClock() as clock:
        place = endpoint([error(status, {"x-should-retry": word}), good()])
        task = asyncio.ensure_future(collect(ask(place)))
        await clock.advance(30)
        assert (task.exception() is None) == (tries == 2)
    assert requests(place) == tries


@pytest.mark.parametrize(
    "first",
    [
        Unreachable("connection refused"),
        FakeAnswer([RESET]),
        FakeAnswer([event({"role": "assistant", "content": ""}), RESET]),
        FakeAnswer([event({"reasoning_content": "hm"}), RESET]),
        FakeAnswer([event({"role": "assistant", "content": ""})]),
        FakeAnswer([b'data: {"error":{"message":"busy","code":503}}\n\n']),
    ],
    ids=["refused", "reset", "reset after a role", "reset after thinking", "cut after a role", "error in the stream"],
)
async def test_given_nothing_shown_when_a_try_breaks_then_it_is_repeated(first: FakeAnswer | Exception) -> None:
    with ManualClock() as clock:
        place = endpoint([first, good()])
        events = await by_the_clock(clock, place)
    assert [one for one in events if not isinstance(one, RetryEvent | ThinkingDelta)] == FINE
    assert requests(place) == 2


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ([event({"content": "The cap"}), RESET], Truncated),
        ([event({"content": "The cap"})], Truncated),
        ([event({"content": "The cap"}), b'data: {"error":{"message":"busy","code":503}}\n\n'], Overloaded),
    ],
    ids=["reset", "cut", "error"],
)
async def test_given_text_shown_when_the_stream_breaks_then_it_is_never_repeated(
    pieces: Sequence[bytes | Exception | None], kind: type[ProviderError]
) -> None:
    place = endpoint([FakeAnswer(pieces), good()])
    seen: list[ModelEvent] = []
    with pytest.raises(kind):
        await listen(ask(place), seen)
    assert (seen, requests(place)) == ([TextDelta("The cap")], 1)


FINISHING = event({"content": "fine"}, "stop").rstrip()


@pytest.mark.parametrize("pieces", [[FINISHING, RESET], [FINISHING[:20], FINISHING[20:], RESET]])
async def test_given_a_whole_last_event_when_the_connection_breaks_behind_it_then_the_answer_is_good(
    pieces: Sequence[bytes | Exception | None],
) -> None:
    place = endpoint([FakeAnswer(pieces)], NEVER)
    assert await collect(ask(place)) == FINE


async def test_given_a_last_event_without_a_finish_when_the_connection_breaks_then_it_is_asked_again() -> None:
    with ManualClock() as clock:
        cut = FakeAnswer([event({"content": "The cap"}).rstrip(), RESET])
        events = await by_the_clock(clock, endpoint([cut, good()]))
    assert events[1:] == FINE


async def test_given_an_error_in_the_last_event_when_the_connection_breaks_then_the_error_is_raised() -> None:
    place = endpoint([FakeAnswer([b'data: {"error":{"message":"busy","code":503}}', RESET])], NEVER)
    with pytest.raises(Overloaded, match="busy"):
        await collect(ask(place))


async def test_given_a_wait_before_a_retry_when_cancelled_then_it_ends_at_once() -> None:
    with ManualClock() as clock:
        task = asyncio.ensure_future(collect(ask(endpoint([error(429, {"retry-after": "30"}), good()]))))
        await clock.until_asleep()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


LIMITS = Timeouts(connect=5, first_event=10, idle=20, progress=30)


async def stalled(clock: ManualClock, place: Endpoint) -> tuple[str, int]:
    """The message of the stall, and after how many milliseconds it came."""
    begin = clock.now_ms()

    async def run() -> tuple[str, int]:
        with pytest.raises(Stalled) as caught:
            await collect(ask(place))
        assert (caught.value.code, caught.value.retryable) == ("stalled", True)
        return caught.value.message, clock.now_ms() - begin

    task = asyncio.ensure_future(run())
    await clock.advance(1000)
    return await task


async def test_given_no_headers_when_the_first_event_is_due_then_the_call_has_stalled() -> None:
    with ManualClock() as clock:
        message, took = await stalled(clock, endpoint([None], NEVER, timeouts=LIMITS))
    assert (took, "Timeouts.first_event" in message) == (10_000, True)


async def test_given_only_comments_when_the_first_event_is_due_then_the_call_has_stalled() -> None:
    with ManualClock() as clock:
        answer = FakeAnswer([b": hello\n\n", b": hello\n\n", None])
        message, took = await stalled(clock, endpoint([answer], NEVER, timeouts=LIMITS))
    assert (took, "Timeouts.first_event" in message, answer.closed) == (10_000, True, True)


async def test_given_silence_in_mid_answer_when_idle_passes_then_the_call_has_stalled() -> None:
    with ManualClock() as clock:
        answer = FakeAnswer([event({"content": "a"}), None])
        message, took = await stalled(clock, endpoint([answer], NEVER, timeouts=LIMITS))
    assert (took, "Timeouts.idle" in message, answer.closed) == (20_000, True, True)


class Dripping(FakeAnswer):
    """Sends a comment every five seconds by the clock, without end."""

    async def read(self) -> bytes:
        if self._left:
            return await super().read()
        from deepstrike.clock import current_clock

        if not self.closed:
            await current_clock().sleep(5)
        if self.closed:
            raise Truncated("closed")
        return b": keepalive\n\n"


async def test_given_comments_without_events_when_progress_passes_then_the_call_has_stalled() -> None:
    with ManualClock() as clock:
        answer = Dripping([event({"content": "a"})])
        message, took = await stalled(clock, endpoint([answer], NEVER, timeouts=LIMITS))
    assert ("Timeouts.progress" in message, answer.closed) == (True, True)
    assert 30_000 <= took <= 35_000


async def test_given_a_slow_consumer_when_it_takes_its_time_then_the_service_is_not_blamed() -> None:
    with ManualClock() as clock:
        place = endpoint([FakeAnswer([event({"content": "a"}), stream(event({"content": "b"}))])], timeouts=LIMITS)
        seen: list[ModelEvent] = []
        async for one in ask(place):
            seen.append(one)
            await clock.advance(500)
    assert seen == [TextDelta("a"), TextDelta("b"), Finish("stop")]


async def test_given_limits_switched_off_when_nothing_comes_then_it_waits() -> None:
    with ManualClock() as clock:
        off = Timeouts(None, None, None, None)
        task = asyncio.ensure_future(collect(ask(endpoint([None], NEVER, timeouts=off))))
        await clock.advance(1_000_000)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_given_a_stall_before_anything_was_shown_when_retried_then_the_answer_comes() -> None:
    with ManualClock() as clock:
        place = endpoint([None, good()], timeouts=LIMITS)
        events = await by_the_clock(clock, place)
    assert events[1:] == FINE


async def test_given_a_cancelled_call_when_a_limit_had_been_set_then_cancellation_is_not_swallowed() -> None:
    with ManualClock() as clock:
        task = asyncio.ensure_future(collect(ask(endpoint([None], timeouts=LIMITS))))
        await clock.advance(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await clock.advance(50)


BREAKING = RetryConfig(max_retries=0, circuit_open_after=3, circuit_reset_after=60)


async def test_given_repeated_failures_when_the_breaker_opens_then_no_request_is_made_until_it_probes() -> None:
    with ManualClock() as clock:
        place = endpoint([error(503), error(503), error(503), good()], BREAKING)
        for _ in range(3):
            with pytest.raises(Overloaded):
                await collect(ask(place))
        for _ in range(3):
            with pytest.raises(CircuitOpen, match="in 60 s"):
                await collect(ask(place))
        assert requests(place) == 3
        await clock.advance(60)
        assert changes(await collect(ask(place))) == ["circuit_half_open", "fine", "circuit_closed", "stop"]
        assert not place.breaker.is_open()


async def test_given_an_error_inside_a_stream_when_it_comes_then_the_breaker_counts_it() -> None:
    once = RetryConfig(max_retries=0, circuit_open_after=1)
    place = endpoint([FakeAnswer([event({"content": "a"}), b'data: {"error":"down"}\n\n'])], once)
    with pytest.raises(Overloaded, match="down"):
        await collect(ask(place))
    assert place.breaker.is_open()


async def test_given_refused_requests_when_they_repeat_then_the_breaker_stays_closed() -> None:
    place = endpoint([error(400) for _ in range(5)], BREAKING)
    for _ in range(5):
        with pytest.raises(BadRequest):
            await collect(ask(place))
    assert not place.breaker.is_open()


async def test_given_a_breaker_that_opens_during_retries_when_it_does_then_the_cause_is_raised() -> None:
    with ManualClock() as clock:
        place = endpoint([error(503), error(503), good()], RetryConfig(max_retries=5, circuit_open_after=2))
        task = asyncio.ensure_future(collect(ask(place)))
        await clock.advance(30)
        assert isinstance(task.exception(), Overloaded)
    assert requests(place) == 2


async def test_given_a_probe_when_its_call_is_dropped_then_the_next_call_may_probe() -> None:
    with ManualClock() as clock:
        answers = [error(503), FakeAnswer([event({"content": "a"}), None]), good()]
        place = endpoint(answers, RetryConfig(max_retries=0, circuit_open_after=1, circuit_reset_after=60))
        with pytest.raises(Overloaded):
            await collect(ask(place))
        await clock.advance(60)
        async with aclosing(ask(place)) as events:
            assert changes([await anext(events) for _ in range(2)]) == ["circuit_half_open", "a"]
        assert changes(await collect(ask(place))) == ["circuit_half_open", "fine", "circuit_closed", "stop"]


async def test_given_a_probe_when_its_call_is_dropped_before_it_asks_then_the_next_call_may_probe() -> None:
    with ManualClock() as clock:
        place = endpoint([error(503), good()], RetryConfig(max_retries=0, circuit_open_after=1, circuit_reset_after=60))
        with pytest.raises(Overloaded):
            await collect(ask(place))
        await clock.advance(60)
        async with aclosing(ask(place)) as events:
            assert changes([await anext(events)]) == ["circuit_half_open"]
        assert changes(await collect(ask(place))) == ["circuit_half_open", "fine", "circuit_closed", "stop"]


async def test_given_the_breakers_changes_when_calls_cause_them_then_each_is_told_once_by_the_call_that_did() -> None:
    with ManualClock() as clock:
        answers = [error(503), error(503), error(503), error(400)]
        place = endpoint(answers, RetryConfig(max_retries=0, circuit_open_after=2, circuit_reset_after=60))
        told = []
        for wait in (0, 0, 0, 60, 60):
            await clock.advance(wait)
            seen: list[ModelEvent] = []
            with pytest.raises(ProviderError) as caught:
                await listen(ask(place), seen)
            told.append((caught.value.code, *changes(seen)))
    assert told == [
        ("overloaded",),
        ("overloaded", "circuit_open"),
        ("circuit_open",),
        ("overloaded", "circuit_half_open", "circuit_open"),
        ("bad_request", "circuit_half_open", "circuit_closed"),
    ]


async def test_given_a_storm_of_calls_when_the_breaker_becomes_half_open_then_one_request_is_made() -> None:
    with ManualClock() as clock:
        place = endpoint([error(503), None, good()], RetryConfig(max_retries=0, circuit_open_after=1))
        await collect_all(place)
        await clock.advance(60)
        storm = [asyncio.ensure_future(collect(ask(place))) for _ in range(500)]
        await clock.advance(1)
        refused = [call for call in storm if call.done() and isinstance(call.exception(), CircuitOpen)]
        assert (len(refused), requests(place)) == (499, 2)
        [probe] = [call for call in storm if not call.done()]
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe


async def test_given_calls_in_flight_when_all_fail_then_only_one_of_them_opens_the_breaker() -> None:
    place = endpoint([error(503) for _ in range(6)], RetryConfig(max_retries=0, circuit_open_after=2))
    calls = [collect_all(place) for _ in range(6)]
    assert sorted(map(len, await asyncio.gather(*calls))) == [0, 0, 0, 0, 0, 1]


async def collect_all(place: Endpoint) -> list[ModelEvent]:
    """What a failing call tells."""
    seen: list[ModelEvent] = []
    with pytest.raises(ProviderError):
        await listen(ask(place), seen)
    return seen


async def test_given_a_consumer_that_stops_at_the_finish_when_it_does_then_the_call_counts_as_good() -> None:
    place = endpoint([error(503), good()], RetryConfig(max_retries=0, circuit_open_after=2))
    with pytest.raises(Overloaded):
        await collect(ask(place))
    async with aclosing(ask(place)) as events:
        async for one in events:
            if isinstance(one, Finish):
                break
    place.breaker.record_failure()
    assert not place.breaker.is_open()


@pytest.mark.parametrize("at", range(4))
async def test_given_a_dropped_call_when_it_is_at_any_event_then_its_answer_is_closed_and_its_slot_free(
    at: int,
) -> None:
    slots = Slots(1)
    answer = FakeAnswer([event({"content": one}) for one in "abcd"] + [None])
    async with aclosing(ask(endpoint([answer], slots=slots))) as events:
        for _ in range(at + 1):
            await anext(events)
    assert answer.closed
    await asyncio.wait_for(slots.acquire(), 5)


async def test_given_one_slot_when_several_calls_are_made_then_they_go_one_after_the_other() -> None:
    slots = Slots(1)
    first, second = FakeAnswer([None]), good()
    one = asyncio.ensure_future(collect(ask(endpoint([first], NEVER, slots=slots))))
    place = endpoint([second], slots=slots)
    two = asyncio.ensure_future(collect(ask(place)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert requests(place) == 0
    first.close()
    with pytest.raises(Truncated):
        await one
    assert await two == FINE


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("application/json", b'{"error":{"message":"model not loaded","type":"server_error"}}', "model not loaded"),
        ("text/html", b"<html>Sign in</html> sk-secret-1", "text/html: <html>Sign in</html> \\*\\*\\*"),
        ("text/html", b"", "empty"),
        ("text/event-stream", b'{"error":{"message":"model not loaded","type":"server_error"}}', "model not loaded"),
        ("text/event-stream", b"\n<html>Sign in</html>", "text/event-stream: <html>Sign in</html>"),
    ],
)
async def test_given_200_without_a_stream_when_it_comes_then_the_error_shows_what_came(
    content_type: str, body: bytes, words: str
) -> None:
    answer = FakeAnswer([body], 200, {"content-type": content_type})
    with pytest.raises(ProviderError, match=words):
        await collect(ask(endpoint([answer], NEVER)))


async def test_given_a_whole_completion_instead_of_a_stream_when_it_comes_then_it_is_the_answer() -> None:
    body = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}'
    answer = FakeAnswer([body], 200, {"content-type": "application/json"})
    assert await collect(ask(endpoint([answer]))) == FINE


async def test_given_a_stream_under_a_wrong_name_when_it_comes_then_it_is_read_all_the_same() -> None:
    answer = FakeAnswer([stream(event({"content": "fine"}))], 200, {"content-type": "text/plain"})
    assert await collect(ask(endpoint([answer]))) == FINE


@pytest.mark.parametrize("name", ["application/json", "text/html; charset=utf-8"])
@pytest.mark.parametrize("start", [b"", b": hello\n\n", b"\xef\xbb\xbf\n", b"event: x\r\n"])
async def test_given_a_stream_named_a_document_when_it_comes_then_it_is_read_all_the_same(
    name: str, start: bytes
) -> None:
    body = start + stream(event({"content": "fine"}))
    for pieces in ([body], [body[i : i + 1] for i in range(len(body))]):
        answer = FakeAnswer(pieces, 200, {"content-type": name})
        assert put_together(await collect(ask(endpoint([answer])))) == Said("fine", finish="stop")


async def test_given_a_stream_named_a_document_when_it_breaks_off_then_it_is_truncated() -> None:
    answer = FakeAnswer([b"dat", RESET], 200, {"content-type": "application/json"})
    with pytest.raises(Truncated):
        await collect(ask(endpoint([answer], NEVER)))


@pytest.mark.parametrize(
    ("target", "shown"), [("/x", r"\(/x\)"), ("http://h/?k=sk-secret-1", r"\(http://h/\?k=\*\*\*\)")]
)
async def test_given_a_redirect_when_it_comes_then_the_error_says_where_to_and_that_it_is_not_followed(
    target: str, shown: str
) -> None:
    answer = FakeAnswer([b"moved"], 307, {"content-type": "text/plain", "location": target})
    with pytest.raises(BadRequest, match=f"redirects are not followed: set base_url to the final address {shown}"):
        await collect(ask(endpoint([answer])))


@pytest.mark.parametrize("end", ["/chat/completions", "/responses", "/messages"])
async def test_given_an_address_with_the_wires_own_path_when_it_is_not_found_then_the_error_says_so(end: str) -> None:
    place = replace(endpoint([error(404)], NEVER), base_url=f"http://model.test/v1{end}")
    with pytest.raises(BadRequest, match=f"base_url must end before {end}"):
        await collect(ask(place))


async def test_given_an_error_body_that_breaks_off_when_read_then_the_status_still_decides() -> None:
    answer = FakeAnswer([b'{"error":', RESET], 401, {"content-type": "application/json"})
    with pytest.raises(Unauthorized, match="HTTP 401"):
        await collect(ask(endpoint([answer])))


async def test_given_bytes_behind_the_end_marker_when_read_then_the_answer_is_over() -> None:
    answer = FakeAnswer([event({"content": "fine"}) + event({}, "stop") + DONE, None])
    assert await asyncio.wait_for(collect(ask(endpoint([answer]))), 5) == FINE
