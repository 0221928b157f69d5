"""Cancellation, break, interrupt and timeouts: prompt, complete, and with a valid log."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator

import pytest
from doubles import (
    Endless,
    Script,
    add,
    assert_paired,
    call,
    calls,
    done_of,
    events_of,
    only,
    result_texts,
    runner_of,
    say,
    user_texts,
)

from deepstrike import DoneEvent, InMemorySessionLog, TextDelta, ToolContext, ToolResultEvent
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest
from deepstrike.stream import StreamEvent
from deepstrike.testing import ManualClock


async def test_breaking_out_stops_the_model_and_leaves_no_task() -> None:
    model = Endless()
    before = asyncio.all_tasks()
    taken: list[StreamEvent] = []
    run = runner_of(model).run_streaming("talk")
    async for event in run:
        taken.append(event)
        if len(taken) == 3:
            break
    await run.aclose()
    assert model.closed.is_set()
    assert asyncio.all_tasks() == before


async def test_dropping_the_iterator_without_closing_stops_the_model_too() -> None:
    model = Endless()

    async def take_one() -> None:
        async for _ in runner_of(model).run_streaming("talk"):
            break

    await take_one()
    gc.collect()
    await asyncio.wait_for(model.closed.wait(), 5)


async def test_a_run_as_context_manager_is_closed_at_its_end() -> None:
    model = Endless()
    async with runner_of(model).run_streaming("talk") as run:
        await anext(aiter(run))
    assert model.closed.is_set()


async def test_cancelling_the_task_propagates_and_runs_the_tools_finally() -> None:
    cleaned = asyncio.Event()
    begun = asyncio.Event()

    async def slow() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.set()
        return "late"

    log = InMemorySessionLog()
    runner = runner_of(Script(calls(call("slow")), say("ok")), slow, log=log)
    task = asyncio.ensure_future(runner.run("go", session_id="s").result())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned.is_set()


async def test_cancelling_in_the_model_stream_propagates() -> None:
    model = Endless()
    task = asyncio.ensure_future(runner_of(model).run("go").result())
    await model.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed.is_set()


async def test_a_cancelled_error_born_inside_a_tool_is_an_error_result() -> None:
    async def broken() -> str:
        raise asyncio.CancelledError

    events = await events_of(runner_of(Script(calls(call("broken")), say("ok")), broken).run_streaming("go"))
    (result,) = only(ToolResultEvent, events)
    assert result.is_error
    assert done_of(events).status == "completed"


async def test_interrupt_stops_in_mid_stream_and_keeps_what_was_shown() -> None:
    runner = runner_of(Endless())
    events: list[StreamEvent] = []
    async for event in runner.run_streaming("talk", session_id="s"):
        events.append(event)
        if len(events) == 3:
            runner.interrupt("s")
    assert done_of(events).status == "user_abort"


async def test_interrupt_from_another_thread_stops_the_run() -> None:
    model = Endless()
    runner = runner_of(model)
    task = asyncio.ensure_future(events_of(runner.run_streaming("talk")))
    await model.started.wait()
    threading.Thread(target=runner.interrupt).start()
    assert done_of(await asyncio.wait_for(task, 5)).status == "user_abort"


def test_interrupt_without_a_run_does_nothing() -> None:
    runner_of(Endless.__new__(Endless)).interrupt()


async def test_after_an_interrupt_the_session_goes_on_with_every_call_answered() -> None:
    hanging = asyncio.Event()

    async def quick() -> str:
        return "quick result"

    async def hang() -> str:
        hanging.set()
        await asyncio.Event().wait()
        return "never"

    script = Script(calls(call("quick", "{}", "a"), call("hang", "{}", "b")), say("on it"))
    runner = runner_of(script, quick, hang)
    first = asyncio.ensure_future(events_of(runner.run_streaming("first", session_id="s")))
    await hanging.wait()
    await asyncio.sleep(0.01)
    runner.interrupt("s")
    assert done_of(await first).status == "user_abort"
    second = await events_of(runner.run_streaming("go on", session_id="s"))
    assert done_of(second).status == "completed"
    assert_paired(script.turns[1])
    assert user_texts(script.turns[1])[-1] == "go on"
    assert result_texts(script.turns[1])[0] == "quick result"
    assert "may have taken effect" in result_texts(script.turns[1])[1]


async def test_interrupted_text_is_replayed_and_followed_by_the_new_goal() -> None:
    class Twice:
        def __init__(self) -> None:
            self.turns: list[list[object]] = []

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.turns.append(list(request.turns))
            yield TextDelta("Once upon")
            if len(self.turns) == 1:
                await asyncio.Event().wait()
            yield Finish("stop")

    model = Twice()
    runner = runner_of(model)
    async for event in runner.run_streaming("a tale", session_id="s"):
        if isinstance(event, TextDelta):
            runner.interrupt()
    await runner.run("shorter", session_id="s")
    assert_paired(model.turns[1])  # type: ignore[arg-type]
    assert user_texts(model.turns[1])[-1] == "shorter"  # type: ignore[arg-type]


async def test_a_timeout_ends_a_stalled_stream() -> None:
    class Stalled:
        async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("so ")
            await asyncio.Event().wait()

    with ManualClock() as clock:
        task = asyncio.ensure_future(events_of(runner_of(Stalled(), timeout_ms=1_500).run_streaming("go")))
        await clock.advance(1.4)
        assert not task.done()
        await clock.advance(0.2)
        events = await asyncio.wait_for(task, 5)
    assert done_of(events).status == "timeout"


async def test_a_timeout_keeps_the_finished_siblings_result() -> None:
    async def quick() -> str:
        return "A"

    async def hang() -> str:
        await asyncio.Event().wait()
        return "B"

    script = Script(calls(call("quick", "{}", "a"), call("hang", "{}", "b")), say("ok"))
    runner = runner_of(script, quick, hang, timeout_ms=1_500)
    with ManualClock() as clock:
        task = asyncio.ensure_future(events_of(runner.run_streaming("go", session_id="s")))
        await clock.advance(1.6)
        events = await asyncio.wait_for(task, 5)
    assert done_of(events).status == "timeout"
    first = only(ToolResultEvent, events)[0]
    assert (first.content, first.is_error) == ("A", False)
    await runner.run("and now?", session_id="s")
    assert result_texts(script.turns[1])[0] == "A"
    assert_paired(script.turns[1])


async def test_a_timeout_does_not_wait_for_a_hung_thread() -> None:
    release = threading.Event()

    def hang(context: ToolContext) -> str:
        release.wait(30)
        return "late"

    script = Script(calls(call("hang")), say("ok"))
    began = time.monotonic()
    events = await events_of(runner_of(script, hang, timeout_ms=200).run_streaming("go"))
    release.set()
    assert done_of(events).status == "timeout"
    assert time.monotonic() - began < 10


async def test_dropping_at_every_event_leaves_a_session_that_goes_on() -> None:
    def script() -> Script:
        both = calls(call("add", '{"x":1,"y":2}', "a"), call("add", '{"x":3,"y":4}', "b"))
        return Script(both, [TextDelta("three "), TextDelta("seven"), Finish("stop")])

    total = len(await events_of(runner_of(script(), add).run_streaming("go")))
    for index in range(total):
        log = InMemorySessionLog()
        run = runner_of(script(), add, log=log).run_streaming("go", session_id="s")
        position = 0
        async for _ in run:
            if position == index:
                break
            position += 1
        await run.aclose()
        after = Script(say("fine"))
        events = await events_of(runner_of(after, add, log=log).run_streaming("next", session_id="s"))
        assert done_of(events).status == "completed"
        assert_paired(after.turns[0])
        assert user_texts(after.turns[0])[-1] == "next"


async def test_a_slow_consumer_holds_the_model_back() -> None:
    produced = 0

    class Flood:
        async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
            nonlocal produced
            for _ in range(20_000):
                produced += 1
                yield TextDelta("x")
            yield Finish("stop")

    run = runner_of(Flood()).run_streaming("go")
    stream = aiter(run)
    await anext(stream)
    for _ in range(20):
        await asyncio.sleep(0)
    assert produced < 2_000
    rest = [event async for event in stream]
    assert isinstance(rest[-1], DoneEvent)
    assert produced == 20_000


async def test_a_model_that_never_waits_can_be_interrupted_all_the_same() -> None:
    class Torrent:
        async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
            while True:
                yield TextDelta("x")

    runner = runner_of(Torrent())
    task = asyncio.ensure_future(runner.run("go").result())
    await asyncio.sleep(0)
    runner.interrupt()
    assert (await asyncio.wait_for(task, 10)).status == "user_abort"


def test_a_loop_torn_down_in_the_middle_of_an_interrupt_leaves_a_valid_log() -> None:
    log = InMemorySessionLog()

    async def stubborn() -> str:
        runner.interrupt()
        raise KeyboardInterrupt

    runner = runner_of(Script(calls(call("stubborn")), say("x")), stubborn, log=log)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(runner.run("go", session_id="s").result())
    after = Script(say("fine"))
    assert runner_of(after, log=log).run_sync("next", session_id="s").status == "completed"
    assert_paired(after.turns[0])


async def test_cancelling_every_task_at_once_ends_the_run() -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    log = InMemorySessionLog()
    runner = runner_of(Script(calls(call("hang", "{}", "a"), call("hang", "{}", "b"))), hang, log=log)
    mine = asyncio.current_task()
    task = asyncio.ensure_future(events_of(runner.run_streaming("go", session_id="s")))
    for _ in range(20):
        await asyncio.sleep(0)
    runner.interrupt()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for each in asyncio.all_tasks() - {mine}:
        each.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.done()
    assert b'"ended","status":"user_abort"' in (await log.read("s"))[-1]


@pytest.mark.parametrize("passes", range(6))
async def test_cancelling_everything_right_at_the_start_ends_the_run(passes: int) -> None:
    log = InMemorySessionLog()
    mine = asyncio.current_task()
    task = asyncio.ensure_future(runner_of(Script(say("hi")), log=log).run("go", session_id="s").result())
    for _ in range(passes):
        await asyncio.sleep(0)
    for each in asyncio.all_tasks() - {mine}:
        each.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.done()
    assert (await runner_of(Script(say("fine")), log=log).run("next", session_id="s")).text == "fine"
