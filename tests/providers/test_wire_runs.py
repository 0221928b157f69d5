"""Whole runs over the wire: what services do wrong, and what comes of it."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from wire_runs import KEY, ONCE, SOON, chat, minimax, run
from wires import ask, call_event, collect, event, stream

from deepstrike import RuntimeOptions, RuntimeRunner, tool
from deepstrike.errors import CircuitOpen
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.qwen import QwenProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.stream import DoneEvent, ErrorEvent, NoticeEvent, RetryEvent, TextDelta
from deepstrike.testing.renderers import MESSAGES, Spoken
from deepstrike.testing.server import ModelServer, Raw, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wire_runs import Outcome


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("application/json", b'{"error":{"message":"model not loaded"}}', ["model not loaded"]),
        ("text/html", b"<html>Sign in</html>", ["200", "text/html", "Sign in"]),
    ],
)
async def test_given_an_answer_that_is_no_stream_then_status_and_beginning_are_told(
    kind: str, body: bytes, told: list[str]
) -> None:
    outcome = await run(Raw([body], headers={"content-type": kind}))
    assert outcome.done.status == "error"
    assert [word for word in told if word not in outcome.error] == []


@pytest.mark.parametrize(
    ("extensions", "sent"), [({}, 16_384), ({"num_ctx": 8_192}, 8_192), ({"options": {"num_ctx": 8_192}}, 8_192)]
)
async def test_given_a_window_then_it_is_sent_unless_the_caller_says_another(
    extensions: dict[str, Any], sent: int
) -> None:
    outcome = await run(kind="ollama", max_tokens=16_384, extensions=extensions)
    assert outcome.requests[0]["options"]["num_ctx"] == sent


async def test_given_no_counts_at_all_then_the_total_is_a_number() -> None:
    calls = [
        Raw(
            [
                stream(
                    call_event({"index": 0, "id": f"c{n}", "function": {"name": "long", "arguments": "{}"}}),
                    finish="tool_calls",
                )
            ]
        )
        for n in range(3)
    ]

    @tool
    def long() -> str:
        """Much."""
        return "x" * 1_500

    outcome = await run(*calls, otherwise=Raw([stream(event({"content": "ok"}))]), extra=[long])
    assert (outcome.done.status, outcome.done.iterations) == ("completed", 4)
    assert outcome.done.total_tokens > 0


async def test_given_a_failed_try_then_totals_and_turns_leave_it_out() -> None:
    calling = [
        call_event({"index": 0, "id": "c1", "function": {"name": "now", "arguments": "{}"}}),
        event({}, "tool_calls"),
    ]
    counted = [_counts(100, 10), _counts(150, 20)]
    replies = [
        Raw([*calling, counted[0]]),
        refusal(503),
        Raw([event({"content": "ok"}), event({}, "stop"), counted[1]]),
    ]
    outcome = await run(*replies, retry=SOON)
    assert (outcome.done.total_tokens, outcome.done.iterations, outcome.text) == (280, 2, "ok")


def _counts(prompt: int, completion: int) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"


async def test_given_a_wait_in_seconds_then_the_second_request_comes_after_it() -> None:
    outcome = await run(refusal(429, retry_after="0.2"), retry=SOON)
    waits = [one.delay_ms for one in outcome.of(RetryEvent)]
    assert (waits, len(outcome.requests), outcome.done.status) == ([200], 2, "completed")


async def test_given_an_empty_account_then_it_is_named_after_one_request() -> None:
    outcome = await run(refusal(429, "You exceeded your current quota", code="insufficient_quota"), retry=SOON)
    assert (len(outcome.requests), outcome.done.status) == (1, "error")
    assert "quota" in outcome.error


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_given_a_passing_status_then_it_is_tried_again(status: int) -> None:
    outcome = await run(_bare(status), retry=SOON)
    assert (len(outcome.requests), outcome.done.status) == (2, "completed")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_given_a_lasting_status_then_it_is_told(status: int) -> None:
    outcome = await run(_bare(status), retry=SOON)
    assert (len(outcome.requests), outcome.done.status) == (1, "error")


def _bare(status: int) -> Raw:
    return Raw([b'{"error":{"message":"x"}}'], status, {"content-type": "application/json"})


async def test_given_a_read_that_fails_before_the_first_byte_then_it_is_tried_again() -> None:
    outcome = await run(Raw([], end="rst"), retry=SOON)
    assert (len(outcome.requests), outcome.done.status) == (2, "completed")


async def test_given_nobody_who_listens_then_it_is_tried_again() -> None:
    with ModelServer() as server:
        address = server.base_url
    soon = RetryConfig(max_retries=2, base_delay=0.01)
    heard = [one async for one in RuntimeRunner(RuntimeOptions(provider=chat(address, soon))).run_streaming("go")]
    assert [type(one) for one in heard] == [RetryEvent, RetryEvent, ErrorEvent, DoneEvent]


async def test_given_an_open_breaker_then_calls_fail_without_a_request() -> None:
    config = RetryConfig(max_retries=0, circuit_open_after=3, circuit_reset_after=60)
    with ModelServer(otherwise=refusal(503)) as server:
        provider = chat(server.base_url, config)
        faults = [(await asyncio.gather(collect(provider.stream(ask())), return_exceptions=True))[0] for _ in range(6)]
        await provider.aclose()
        assert len(server.requests) == 3
    assert [type(fault) for fault in faults[3:]] == [CircuitOpen] * 3


@pytest.mark.parametrize("how", ["interrupt", "cancel", "timeout"])
async def test_given_a_long_wait_for_a_retry_when_the_run_is_stopped_then_it_ends_at_once(how: str) -> None:
    with ModelServer(otherwise=refusal(429, retry_after="30")) as server:
        limit = {"timeout_ms": 300} if how == "timeout" else {}
        runner = RuntimeRunner(RuntimeOptions(provider=chat(server.base_url, SOON), **limit))  # type: ignore[arg-type]
        run = runner.run_streaming("go", session_id="s")
        seen: list[object] = []
        waiting = asyncio.Event()

        async def listen() -> None:
            async for one in run:
                seen.append(one)
                waiting.set()

        task = asyncio.create_task(listen())
        await waiting.wait()
        if how == "interrupt":
            runner.interrupt("s")
        elif how == "cancel":
            task.cancel()
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 10)
    if how != "cancel":
        assert isinstance(seen[-1], DoneEvent)
        assert seen[-1].status == {"interrupt": "user_abort", "timeout": "timeout"}[how]


@pytest.mark.parametrize("retries", [0, 2])
async def test_given_a_service_that_always_fails_then_retries_are_counted_once(retries: int) -> None:
    config = RetryConfig(max_retries=retries, base_delay=0.01, max_delay=0.015)
    outcome = await run(otherwise=refusal(503), retry=config)
    waits = [one.delay_ms for one in outcome.of(RetryEvent)]
    assert (len(outcome.requests), len(waits), outcome.done.status) == (retries + 1, retries, "error")
    assert all(wait <= 15 for wait in waits)


async def test_given_thinking_at_kimi_then_every_message_with_calls_has_the_field() -> None:
    call = call_event({"index": 0, "id": "now:0", "function": {"name": "now", "arguments": "{}"}})
    silent = Raw([stream(call, finish="tool_calls")])
    thinking = Raw([stream(event({"reasoning_content": "Hm."}), call, finish="tool_calls")])
    outcome = await run(silent, thinking, make=lambda url, retry: KimiProvider(KEY, base_url=url, retry_config=retry))
    assert [one.get("reasoning_content") for one in outcome.messages(2, "assistant")] == ["", "Hm."]


async def test_given_a_closing_tag_alone_then_it_is_not_shown() -> None:
    lone = Raw([stream(event({"content": "easy one</think>Paris."}))])
    assert "</think>" not in (await run(lone, make=minimax)).text


async def test_given_thinking_at_qwen_then_every_request_is_streamed() -> None:
    call = Raw(
        [
            stream(
                call_event({"index": 0, "id": "c", "function": {"name": "now", "arguments": "{}"}}), finish="tool_calls"
            )
        ]
    )
    outcome = await run(
        call,
        make=lambda url, retry: QwenProvider(KEY, base_url=url, retry_config=retry),
        extensions={"enable_thinking": True},
    )
    assert [(one["enable_thinking"], one["stream"]) for one in outcome.requests] == [(True, True)] * 2


def splits(text: str) -> Iterator[list[str]]:
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))
    yield list(text)


async def test_given_tags_cut_anywhere_then_text_and_reasoning_stay_apart() -> None:
    for parts in splits("<think>plan</think>Result: 7"):
        outcome = await run(Raw([stream(*(event({"content": part}) for part in parts))]), make=minimax)
        assert (outcome.text, outcome.thinking) == ("Result: 7", "plan"), parts


async def test_given_other_tags_then_they_are_text() -> None:
    for make in (chat, minimax):
        assert (await run("use <b>bold</b>", make=make)).text == "use <b>bold</b>"


async def test_given_a_key_that_comes_back_then_nobody_is_told_at_any_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    log = InMemorySessionLog()
    echoed = Raw(
        [json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()],
        401,
        {"content-type": "application/json"},
    )
    failing, fine = await run(echoed, session_log=log), await run(session_log=log)
    kept = [record for session in await log.sessions() for record in await log.read(session)]
    assert "401" in failing.error
    assert fine.done.status == "completed"
    for place in (failing.events, fine.events, failing.requests, kept, caplog.text, caplog.records):
        assert KEY not in repr(place)


def outcome_of(step: Callable[[], object]) -> object:
    """What it gives, or why it fails."""
    try:
        return step()
    except Exception as fault:
        return fault, str(fault)


async def test_given_objects_that_hold_the_key_then_none_shows_it() -> None:
    provider = chat("http://127.0.0.1:9/v1", SOON)
    options = RuntimeOptions(provider=provider)
    for one in (provider, SOON, options, RuntimeRunner(options), CircuitBreaker(SOON), vars(options)):
        assert KEY not in f"{one} {one!r}"
    for step in (lambda: copy.deepcopy(options), lambda: dataclasses.asdict(options)):
        assert KEY not in repr(outcome_of(step))


async def call_of(name: str, arguments: str, *extra: Any) -> Outcome:
    return await run(Raw([stream(call_event(call(name, arguments)), finish="tool_calls")]), extra=extra)


async def test_given_containers_as_texts_then_the_tool_gets_containers() -> None:
    seen: list[object] = []

    @tool
    def sort(opts: dict[str, int], ids: list[int]) -> str:
        """Sort."""
        seen.append((opts, ids))
        return "done"

    assert (await call_of("sort", '{"opts":"{\\"k\\":1}","ids":"[1,2]"}', sort)).results[0].is_error is False
    assert (await call_of("sort", '{"opts":"{k","ids":"[1,2]"}', sort)).results[0].is_error is True
    assert seen == [({"k": 1}, [1, 2])]


async def test_given_false_as_a_text_then_it_is_never_true() -> None:
    seen: list[bool] = []

    @tool
    def set_admin(on: bool) -> str:
        """Set it."""
        seen.append(on)
        return "done"

    for word in ("false", "False", "0", "no"):
        await call_of("set_admin", json.dumps({"on": word}), set_admin)
    assert not any(seen)
    await call_of("set_admin", '{"on":"true"}', set_admin)
    assert seen[-1] is True


async def test_given_missing_and_surplus_arguments_then_they_are_named() -> None:
    missing = await call_of("get_weather", "{}")
    assert (missing.results[0].is_error, "city" in missing.results[0].content, missing.ran) == (True, True, [])
    surplus = await call_of("get_weather", '{"city":"x","foo":1}')
    assert surplus.ran == [("get_weather", {"city": "x"})] or "foo" in surplus.results[0].content
    assert missing.done.status == surplus.done.status == "completed"


async def test_given_results_that_are_values_then_they_go_back_as_json() -> None:
    @tool
    def table() -> dict[str, object]:
        """A table."""
        return {"status": "ok", "n": 1}

    @tool
    def row() -> list[str]:
        """A row."""
        return ["é"]

    for made, value in ((table, {"status": "ok", "n": 1}), (row, ["é"])):
        outcome = await call_of(made.name, "{}", made)
        assert [json.loads(one["content"]) for one in outcome.messages(1, "tool")] == [value]


def call(name: str, arguments: str, call_id: str | None = "c1", index: int = 0) -> dict[str, object]:
    """A whole call in one delta; without an id if it has none."""
    named = {} if call_id is None else {"id": call_id}
    return {"index": index, **named, "function": {"name": name, "arguments": arguments}}


async def test_given_a_finish_of_calls_without_any_then_it_ends_at_once() -> None:
    nothing = Raw([stream(event({"role": "assistant", "content": ""}), finish="tool_calls")])
    outcome = await run(nothing, otherwise=nothing, max_turns=25)
    assert (len(outcome.requests) <= 2, outcome.done.status in ("completed", "error")) == (True, True)


async def test_given_calls_although_the_finish_is_stop_then_they_run() -> None:
    outcome = await run(Raw([stream(call_event(call("now", "{}")))]))
    assert (outcome.ran, outcome.text, outcome.done.status) == ([("now", {})], "ok", "completed")


async def test_given_a_filtered_answer_then_the_filter_is_named_after_one_request() -> None:
    outcome = await run(Raw([stream(finish="content_filter")]))
    assert (len(outcome.requests), outcome.done.status, "filter" in outcome.error) == (1, "error", True)


async def test_given_a_call_cut_by_the_output_limit_then_it_is_not_run_and_that_is_said() -> None:
    cut = Raw([stream(call_event(call("write_file", '{"path": "a.md", "te')), finish="length")])
    outcome = await run(cut, otherwise=cut)
    assert (outcome.ran, outcome.calls, outcome.done.status) == ([], [], "error")
    assert "limit" in outcome.error


async def test_given_calls_without_ids_then_each_has_one_of_its_own_everywhere() -> None:
    both = call_event(call("f", "{}", None), call("f", "{}", None, 1))
    outcome = await run(Raw([stream(both, finish="tool_calls")]))
    [message] = outcome.messages(1, "assistant")
    ids = [call_id for call_id, *_ in outcome.calls]
    assert (len(set(ids)), all(ids)) == (2, True)
    assert [one.call_id for one in outcome.results] == ids
    assert [one["id"] for one in message["tool_calls"]] == ids
    assert [one["tool_call_id"] for one in outcome.messages(1, "tool")] == ids


async def test_given_no_arguments_in_three_forms_then_the_tool_runs_and_an_empty_object_goes_back() -> None:
    forms = [call("now", "", "c1"), call("now", "null", "c2", 1), {"index": 2, "id": "c3", "function": {"name": "now"}}]
    outcome = await run(Raw([stream(call_event(*forms), finish="tool_calls")]))
    [message] = outcome.messages(1, "assistant")
    assert outcome.ran == [("now", {})] * 3
    assert [one["function"]["arguments"] for one in message["tool_calls"]] == ["{}"] * 3


async def test_given_an_unknown_tool_beside_a_good_one_then_the_good_one_runs() -> None:
    both = call_event(call("execute_python", "{}", "c1"), call("add", '{"x":1,"y":2}', "c2", 1))
    outcome = await run(Raw([stream(both, finish="tool_calls")]))
    assert outcome.ran == [("add", {"x": 1, "y": 2})]
    assert [one.is_error for one in outcome.results] == [True, False]
    assert "add" in outcome.results[0].content


async def test_given_a_first_event_when_the_second_is_held_back_then_it_is_shown_all_the_same() -> None:
    with ModelServer([Raw([event({"content": "one "}).replace(b"\n", b"\r\n")], end="stall")]) as server:
        running = RuntimeRunner(RuntimeOptions(provider=chat(server.base_url, ONCE))).run_streaming("go")
        async for one in running:
            assert one == TextDelta("one ")
            break


@pytest.mark.parametrize("shown", ["", "Half an"])
async def test_given_an_overload_inside_an_answer_then_it_is_tried_again_only_if_nothing_was_shown(shown: str) -> None:
    breaking = RetryConfig(max_retries=2, base_delay=0.01, circuit_open_after=1, circuit_reset_after=0)
    broken = Raw([*MESSAGES.answer(Spoken(shown)).opening, MESSAGES.failure("overloaded just now")])
    outcome = await run(broken, kind="anthropic", retry=breaking)
    if shown:
        assert (outcome.text, outcome.done.status, len(outcome.requests)) == (shown, "error", 1)
        assert "overloaded just now" in outcome.error
    else:
        assert (outcome.text, outcome.done.status, len(outcome.requests)) == ("ok", "completed", 2)
    assert "circuit_open" in [one.code for one in outcome.of(NoticeEvent)]


async def test_given_a_reset_behind_text_then_the_text_is_never_said_twice() -> None:
    outcome = await run(Raw([event({"content": "The cap"})], end="rst"), "The capital is X", retry=SOON)
    assert (outcome.text, outcome.done.status, len(outcome.requests)) == ("The cap", "error", 1)
    assert "broke in mid-answer" in outcome.error
