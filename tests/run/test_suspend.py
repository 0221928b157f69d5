"""Tools that ask and wait: parked, answered later and elsewhere, or answered at once by somebody in this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from doubles import (
    Script,
    assert_paired,
    call,
    calls,
    copied,
    done_of,
    events_of,
    kinds_of,
    only,
    result_texts,
    runner_of,
    say,
)

from deepstrike import (
    ConfigError,
    InMemorySessionLog,
    PendingRequest,
    RuntimeRunner,
    Suspend,
    TextDelta,
    ToolContext,
    ToolDeltaEvent,
    ToolResultEvent,
    ToolSuspendEvent,
    tool,
)
from deepstrike.testing import ManualClock


class Desk:
    """A tool with two questions that notes what happens to it."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.closed = 0

    async def book(self, city: str, context: ToolContext) -> AsyncIterator[str | Suspend]:
        """Book a seat."""
        self.keys.append(context.idempotency_key)
        try:
            context.emit("looking up")
            yield "looked; "
            seat = yield Suspend({"city": city, "ask": ["aisle", "window"]})
            yield f"seat {seat}; "
            paid = yield Suspend("pay?")
            yield f"paid {paid}"
        finally:
            self.closed += 1


async def ask(question: str) -> AsyncIterator[str | Suspend]:
    """Ask a person."""
    answer = yield Suspend(question)
    yield json.dumps(answer)


def asking(*questions: str) -> Script:
    """A model that asks all the questions at once, then says so."""
    wanted = [call("ask", json.dumps({"question": each}), f"c{number}") for number, each in enumerate(questions, 1)]
    return Script(calls(*wanted), say("Noted."))


async def parked(*questions: str) -> InMemorySessionLog:
    """A session that waits for the answers to these questions."""
    log = InMemorySessionLog()
    result = await runner_of(asking(*questions), ask, log=log).run("go", session_id="s")
    assert (result.status, [request.payload for request in result.pending]) == ("suspended", list(questions))
    return log


def later(log: InMemorySessionLog) -> RuntimeRunner:
    """Another process's runner on the same log."""
    return runner_of(Script(say("Noted.")), ask, log=log)


async def test_without_an_answer_the_tool_is_closed_and_the_run_parks() -> None:
    desk, log = Desk(), InMemorySessionLog()
    script = Script(calls(call("book", '{"city":"Rome"}', "c1")))
    runner = runner_of(script, desk.book, log=log)
    events = await events_of(runner.run_streaming("go", session_id="s"))
    question = {"city": "Rome", "ask": ["aisle", "window"]}
    request = PendingRequest("4", "suspension", "c1", "book", {"city": "Rome"}, question)
    assert events[-2:] == [ToolSuspendEvent("c1", "book", "4", question), done_of(events)]
    assert (done_of(events).status, done_of(events).pending, desk.closed) == ("suspended", (request,), 1)
    assert await kinds_of(log, "s") == ["started", "replied", "judged", "begun", "suspended"]
    assert await runner.pending("s") == (request,)
    assert await runner_of(Script(), log=await copied(log, "s")).pending("s") == (request,)


async def test_each_answer_calls_the_tool_anew_and_shows_only_what_is_new() -> None:
    desk, log = Desk(), InMemorySessionLog()
    await runner_of(Script(calls(call("book", '{"city":"Rome"}', "c1"))), desk.book, log=log).run("go", session_id="s")
    first = await events_of(runner_of(Script(), desk.book, log=log).resume("s", answers={"4": "12A"}))
    assert [event.delta for event in only(ToolDeltaEvent, first)] == ["seat 12A; "]
    (request,) = done_of(first).pending or ()
    assert (request.payload, done_of(first).status) == ("pay?", "suspended")

    elsewhere, script = Desk(), Script(say("Booked."))
    runner = runner_of(script, elsewhere.book, log=await copied(log, "s"))
    second = await events_of(runner.resume("s", answers={request.request_id: True}))
    assert [event.delta for event in only(ToolDeltaEvent, second)] == ["paid True"]
    assert [event.content for event in only(ToolResultEvent, second)] == ["looked; seat 12A; paid True"]
    assert (done_of(second).status, done_of(second).iterations) == ("completed", 2)
    assert len({*desk.keys, *elsewhere.keys}) == 1
    assert_paired(script.turns[0])


async def test_without_answers_a_parked_session_stays_as_it_is() -> None:
    log = await parked("one?")
    before = await log.read("s")
    events = await events_of(later(log).resume("s"))
    assert events == [done_of(events)]
    assert (done_of(events).status, [each.call_id for each in done_of(events).pending or ()]) == ("suspended", ["c1"])
    assert await log.read("s") == before


async def test_of_several_questions_those_without_an_answer_stay_open() -> None:
    log = await parked("one?", "two?", "three?")
    some = await later(log).resume("s", answers={"c2": 2})
    assert (some.status, [each.payload for each in some.pending]) == ("suspended", ["one?", "three?"])
    parking = ["started", "replied", *["judged"] * 3, *["begun"] * 3, *["suspended"] * 3]
    assert await kinds_of(log, "s") == [*parking, "resumed", "answered", "begun", "settled"]
    script = Script(say("Noted."))
    rest = {each.request_id: each.payload for each in some.pending}
    assert (await runner_of(script, ask, log=log).resume("s", answers=rest)).status == "completed"
    assert result_texts(script.turns[0]) == ['"one?"', "2", '"three?"']


async def test_an_answer_to_nothing_is_refused_by_name_and_loses_nothing() -> None:
    log = await parked("one?", "two?")
    before = await log.read("s")
    first, second = [request.request_id for request in await later(log).pending("s")]
    for answers in ({"99": 1}, {first: 1, "c9": 2}):
        with pytest.raises(ConfigError, match=rf"is not open.*'{first}' \(suspension of ask, call 'c1'\)"):
            await later(log).resume("s", answers=answers)
    with pytest.raises(ConfigError, match="two answers"):
        await later(log).resume("s", answers={first: 1, "c1": 2})
    assert await log.read("s") == before
    assert (await later(log).resume("s", answers={first: 1, second: 2})).status == "completed"


async def test_an_answer_is_taken_once() -> None:
    log = await parked("one?", "two?")
    (first, _) = await later(log).pending("s")
    await later(log).resume("s", answers={first.request_id: 1})
    with pytest.raises(ConfigError, match="answered before"):
        await later(log).resume("s", answers={first.request_id: 1})
    with pytest.raises(ConfigError, match="answered before"):
        await later(log).resume("s", answers={"c1": 1})


@pytest.mark.parametrize(
    "answer", [None, True, 0, 12345678901234567890123, 1.5, "é\u2028", ["a", {"b": None}], {"x": []}]
)
async def test_the_tool_gets_the_value_that_was_given(answer: object) -> None:
    got: list[object] = []

    async def take() -> AsyncIterator[str | Suspend]:
        got.append((yield Suspend()))
        yield "ok"

    log = InMemorySessionLog()
    runner = runner_of(Script(calls(call("take")), say("ok")), take, log=log)
    (request,) = (await runner.run("go", session_id="s")).pending
    assert request.payload is None
    await runner.resume("s", answers={request.request_id: answer})
    assert got == [answer]


async def test_a_once_tool_is_lost_only_between_its_next_begin_and_its_next_question() -> None:
    desk, log = Desk(), InMemorySessionLog()
    await runner_of(Script(calls(call("book", '{"city":"Rome"}', "c1"))), desk.book, log=log).run("go", session_id="s")
    await runner_of(Script(), desk.book, log=log).resume("s", answers={"4": "12A"})
    assert (await kinds_of(log, "s"))[5:] == ["resumed", "answered", "begun", "suspended"]
    for records, kinds in ((8, ["outcome_unknown"]), (9, [])):
        script = Script(say("ok"))
        events = await events_of(runner_of(script, Desk().book, log=await copied(log, "s", records)).resume("s"))
        assert [event.error_kind for event in only(ToolResultEvent, events)] == kinds


async def test_a_call_beside_a_question_runs_to_its_end_first() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "worked"

    script = Script(calls(call("ask", '{"question":"sure?"}', "c1"), call("work", "{}", "c2")), say("ok"))
    runner = runner_of(script, ask, work)
    events = await events_of(runner.run_streaming("go", session_id="s"))
    assert [(event.call_id, event.content) for event in only(ToolResultEvent, events)] == [("c2", "worked")]
    assert done_of(events).status == "suspended"
    await runner.resume("s", answers={"c1": "yes"})
    assert result_texts(script.turns[1]) == ['"yes"', "worked"]


async def test_a_new_goal_withdraws_the_question() -> None:
    log = await parked("one?")
    script = Script(say("ok"))
    events = await events_of(runner_of(script, ask, log=log).run_streaming("something else", session_id="s"))
    assert [(each.call_id, each.name, each.error_kind) for each in only(ToolResultEvent, events)] == [
        ("c1", "ask", "withdrawn")
    ]
    assert_paired(script.turns[0])
    assert await later(log).pending("s") == ()


@pytest.mark.parametrize("threaded", [False, True])
async def test_somebody_here_answers_while_the_tool_stays_alive(threaded: bool) -> None:
    desk, asked = Desk(), list[ToolSuspendEvent]()
    threads = set[int]()

    def answer(event: ToolSuspendEvent) -> object:
        asked.append(event)
        threads.add(threading.get_ident())
        return len(asked)

    async def answer_soon(event: ToolSuspendEvent) -> object:
        await asyncio.sleep(0)
        return answer(event)

    script = Script(calls(call("book", '{"city":"Rome"}', "c1")), say("Booked."))
    runner = runner_of(script, desk.book, on_tool_suspend=answer if threaded else answer_soon)
    events = await events_of(runner.run_streaming("go", session_id="s"))
    assert [event.payload for event in asked] == [{"city": "Rome", "ask": ["aisle", "window"]}, "pay?"]
    assert asked == only(ToolSuspendEvent, events)
    assert [event.content for event in only(ToolResultEvent, events)] == ["looked; seat 1; paid 2"]
    assert (len(desk.keys), desk.closed, done_of(events).status) == (1, 1, "completed")
    assert (threading.get_ident() in threads) is not threaded


async def test_several_tools_ask_at_once_and_each_gets_its_own_answer() -> None:
    both = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

    async def answer(event: ToolSuspendEvent) -> object:
        if both is not None:
            await both.wait()
        return event.call_id

    script = asking("one?", "two?")
    result = await runner_of(script, ask, on_tool_suspend=answer).run("go")
    assert (result.status, result_texts(script.turns[1])) == ("completed", ['"c1"', '"c2"'])


@pytest.mark.parametrize("wrong", [KeyError("nobody"), None])
async def test_an_answer_that_fails_becomes_the_error_result_of_the_call(wrong: Exception | None) -> None:
    desk = Desk()

    async def answer(_event: ToolSuspendEvent) -> object:
        if wrong is not None:
            raise wrong
        return object()

    script = Script(calls(call("book", '{"city":"Rome"}', "c1")), say("A pity."))
    events = await events_of(runner_of(script, desk.book, on_tool_suspend=answer).run_streaming("go"))
    (result,) = only(ToolResultEvent, events)
    assert result.error_kind == "exception"
    assert result.content.startswith("the tool's question got no answer: " + ("KeyError" if wrong else "ConfigError"))
    assert (done_of(events).status, desk.closed) == ("completed", 1)


async def test_a_question_parked_elsewhere_is_put_to_whoever_answers_today() -> None:
    for reply, expected in (("yes", '"yes"'), (ValueError("no"), "the tool's question got no answer: ValueError: no")):
        script = Script(say("Noted."))

        async def answer(event: ToolSuspendEvent, reply: object = reply) -> object:
            assert (event.payload, event.suspension_id) == ("one?", "4")
            if isinstance(reply, Exception):
                raise reply
            return reply

        runner = runner_of(script, ask, log=await parked("one?"), on_tool_suspend=answer)
        assert (await runner.resume("s")).status == "completed"
        assert result_texts(script.turns[0]) == [expected]


async def test_an_interrupt_while_somebody_is_asked_closes_tool_and_question() -> None:
    desk, asked, left = Desk(), asyncio.Event(), asyncio.Event()

    async def answer(_event: ToolSuspendEvent) -> object:
        asked.set()
        try:
            return await asyncio.Event().wait()
        finally:
            left.set()

    before = asyncio.all_tasks()
    runner = runner_of(Script(calls(call("book", '{"city":"Rome"}'))), desk.book, on_tool_suspend=answer)
    task = asyncio.ensure_future(events_of(runner.run_streaming("go", session_id="s")))
    await asked.wait()
    runner.interrupt("s")
    events = await task
    assert (done_of(events).status, desk.closed, left.is_set()) == ("user_abort", 1, True)
    assert [event.error_kind for event in only(ToolResultEvent, events)] == ["cancelled"]
    assert asyncio.all_tasks() == before


async def test_the_time_in_which_a_tool_waits_is_not_its_own_but_the_goals() -> None:
    @tool(timeout_ms=1_000)
    async def slow(question: str) -> AsyncIterator[str | Suspend]:
        answer = yield Suspend(question)
        yield str(answer)

    async def answer(_event: ToolSuspendEvent) -> object:
        await clock.sleep(5)
        return "late"

    with ManualClock() as clock:
        for timeout_ms, status, texts in ((None, "completed", ["late"]), (2_000, "timeout", [])):
            script = Script(calls(call("slow", '{"question":"?"}')), say("ok"))
            runner = runner_of(script, slow, timeout_ms=timeout_ms, on_tool_suspend=answer)
            task = asyncio.ensure_future(runner.run("go").result())
            await clock.advance(10)
            result = await task
            assert result.status == status
            assert result_texts(script.turns[-1]) == texts


async def test_a_tool_that_does_not_end_at_its_question_is_an_error() -> None:
    async def stubborn() -> AsyncIterator[str | Suspend]:
        try:
            yield Suspend("?")
        finally:
            yield "I stay"

    events = await events_of(runner_of(Script(calls(call("stubborn")), say("ok")), stubborn).run_streaming("go"))
    (result,) = only(ToolResultEvent, events)
    assert (result.error_kind, "ignored GeneratorExit" in result.content) == ("exception", True)
    assert done_of(events).status == "completed"


def sync_generator() -> Iterator[str | Suspend]:
    """A sync tool that yields a question."""
    yield "before"
    yield Suspend("?")


async def returned() -> Suspend:
    """A tool that returns a question."""
    return Suspend("?")


def returned_by_a_function() -> Suspend:
    """A sync tool that returns a question."""
    return Suspend("?")


@pytest.mark.parametrize("misplaced", [sync_generator, returned, returned_by_a_function])
async def test_a_question_where_no_answer_can_come_back_is_a_clear_error(misplaced: Callable[[], object]) -> None:
    script = Script(calls(call(misplaced.__name__)), say("ok"))
    events = await events_of(runner_of(script, misplaced).run_streaming("go"))
    (result,) = only(ToolResultEvent, events)
    assert (result.error_kind, "only an async generator tool can suspend" in result.content) == ("exception", True)
    assert [event.delta for event in only(TextDelta, events)] == ["ok"]


async def test_what_json_cannot_hold_is_asked_as_its_text() -> None:
    class Thing:
        def __str__(self) -> str:
            return "a thing"

    async def odd() -> AsyncIterator[str | Suspend]:
        yield Suspend([Thing(), "\ud800", b"bytes", float("nan"), {1}])

    (request,) = (await runner_of(Script(calls(call("odd"))), odd).run("go")).pending
    assert request.payload == ["a thing", "\ufffd", "bytes", None, [1]]


async def test_a_question_that_nests_too_deeply_is_the_error_of_its_call() -> None:
    async def deep() -> AsyncIterator[str | Suspend]:
        nested: list[object] = []
        for _ in range(300):
            nested = [nested]
        yield Suspend(nested)

    events = await events_of(runner_of(Script(calls(call("deep")), say("ok")), deep).run_streaming("go"))
    (result,) = only(ToolResultEvent, events)
    assert (result.error_kind, "nests deeper than 100 levels" in result.content) == ("exception", True)
    assert done_of(events).status == "completed"
