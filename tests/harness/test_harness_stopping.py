"""Harnesses that are left, interrupted, out of time, parked; and taken up again."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from judged import Answers, runner_of, script, verdict

from deepstrike import Governance, InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.harness import (
    AttemptDoneEvent,
    EvalLoopHarness,
    HarnessDoneEvent,
    HarnessLoop,
    HarnessOutcome,
    HarnessRequest,
    QualityGate,
)
from deepstrike.kernel import Kernel
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.stream import TextDelta
from deepstrike.testing import ManualClock

GOAL = HarnessRequest("Write a haiku")


class Waiting:
    """A provider, or a gate, that waits for ever; `begun` tells that somebody waits, `let_go` that it was stopped."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        await self.wait()
        yield TextDelta("never")

    async def wait(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.let_go.set()


class WaitingGate(QualityGate):
    """A gate that never answers."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    async def evaluate(self, request: HarnessRequest, outcome: HarnessOutcome) -> bool:
        await self._waiting.wait()
        return True


def loops(waiting: Waiting) -> list[tuple[str, RuntimeRunner, HarnessLoop | EvalLoopHarness]]:
    """Harnesses that wait: in the attempt, in the judge, in the gate."""
    attempt, judge, gate = runner_of(waiting), runner_of(script("one")), runner_of(script("one"))
    return [
        ("attempt", attempt, HarnessLoop(attempt, script())),
        ("judge", judge, HarnessLoop(judge, waiting)),
        ("gate", gate, EvalLoopHarness(gate, WaitingGate(waiting))),
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("session", ["s", None])
async def test_given_a_harness_that_waits_when_interrupted_then_it_ends_at_once(
    place: int, session: str | None
) -> None:
    waiting = Waiting()
    _, runner, harness = loops(waiting)[place]
    work = asyncio.create_task(harness.run(GOAL, session_id="s"))
    await waiting.begun.wait()

    runner.interrupt(session)
    outcome = await work

    assert (outcome.status, outcome.passed, outcome.attempts) == ("user_abort", False, 1)
    assert waiting.let_go.is_set()


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_given_a_harness_that_waits_when_another_session_is_interrupted_then_it_goes_on(place: int) -> None:
    waiting = Waiting()
    _, runner, harness = loops(waiting)[place]
    work = asyncio.create_task(harness.run(GOAL, session_id="s"))
    await waiting.begun.wait()

    runner.interrupt("other")
    await asyncio.sleep(0)

    assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert waiting.let_go.is_set()


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_given_a_harness_that_waits_when_cancelled_then_nothing_is_left_and_the_logs_are_valid(
    place: int,
) -> None:
    waiting = Waiting()
    _, runner, harness = loops(waiting)[place]
    work = asyncio.create_task(harness.run(GOAL, session_id="s"))
    await waiting.begun.wait()

    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    assert waiting.let_go.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for session in await runner.sessions():
        outcome = Kernel.replay(await runner.log.read(session)).outcome()
        assert outcome is not None
        assert outcome.status in ("completed", "user_abort")


def two_attempts(log: InMemorySessionLog) -> HarnessLoop:
    """A loop that takes two attempts, each with a tool call."""

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    call: list[ModelEvent] = [ToolCall("c", "look", "{}"), Finish("tool_calls")]
    model = script(call, "one", call, "two")
    return HarnessLoop(runner_of(model, look, log=log), script(verdict(False, "again"), verdict(True, "good")))


async def test_given_a_stream_when_left_at_every_event_then_nothing_goes_on_and_a_later_call_finishes_it() -> None:
    whole = [event async for event in two_attempts(InMemorySessionLog()).run_streaming(GOAL)]

    for at in range(len(whole)):
        log = InMemorySessionLog()
        stream = two_attempts(log).run_streaming(GOAL, session_id="s")
        async with stream:
            seen = 0
            async for _ in stream:
                seen += 1
                if seen > at:
                    break
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for session in await log.sessions():
            Kernel.replay(await log.read(session))
        again = EvalLoopHarness(runner_of(ScriptedProvider(["two"], repeat_last=True), log=log), gate=Answers(True))
        outcome = await again.run(GOAL, session_id="s")
        # How far a run has come that nobody listens to any more is its own affair; what is recorded counts.
        assert (outcome.passed, outcome.result in ("one", "two")) == (True, True), at
        assert len(await log.sessions()) <= 4


async def test_given_a_task_that_listens_when_cancelled_at_every_event_then_nothing_is_left() -> None:
    count = len([event async for event in two_attempts(InMemorySessionLog()).run_streaming(GOAL)])

    for at in range(count):
        log = InMemorySessionLog()
        seen: list[object] = []

        async def listen(log: InMemorySessionLog = log, seen: list[object] = seen) -> None:
            async with aclosing(two_attempts(log).run_streaming(GOAL)) as stream:
                async for event in stream:
                    seen.append(event)
                    if len(seen) > at:  # noqa: B023  (awaited in this turn of the loop)
                        task.cancel()  # noqa: B023
                        await asyncio.sleep(0)

        task = asyncio.create_task(listen())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for session in await log.sessions():
            Kernel.replay(await log.read(session))


async def test_given_a_time_limit_when_the_gate_takes_longer_then_the_loop_ends_by_it() -> None:
    waiting = Waiting()
    with ManualClock() as clock:
        harness = EvalLoopHarness(runner_of(script("one"), timeout_ms=5_000), WaitingGate(waiting))
        work = asyncio.create_task(harness.run(GOAL))
        await waiting.begun.wait()
        await clock.advance(5.0)
        outcome = await work

    assert (outcome.status, outcome.passed, outcome.result) == ("timeout", False, "one")
    assert waiting.let_go.is_set()


async def test_given_a_finished_harness_when_run_again_then_nobody_is_asked_again() -> None:
    log = InMemorySessionLog()
    before = await two_attempts(log).run(GOAL, session_id="s")
    model, judge = script(), script()

    after = await HarnessLoop(runner_of(model, log=log), judge).run(GOAL, session_id="s")

    assert (after.result, after.passed, after.feedback, after.attempts) == ("two", True, "good", 2)
    assert (after.total_tokens, after.iterations) == (before.total_tokens, before.iterations)
    assert (model.requests, judge.requests) == ([], [])


async def test_given_an_attempt_that_asks_a_person_when_it_parks_then_the_answer_lets_the_loop_go_on() -> None:
    ran: list[str] = []

    @tool
    async def send() -> str:
        """Send."""
        ran.append("send")
        return "sent"

    log = InMemorySessionLog()
    call: list[ModelEvent] = [ToolCall("c", "send", "{}"), Finish("tool_calls")]

    def runner(*replies: str | list[ModelEvent]) -> RuntimeRunner:
        return RuntimeRunner(
            RuntimeOptions(
                provider=script(*replies),
                session_log=log,
                execution_plane=LocalExecutionPlane().register(send),
                governance=Governance("ask"),
            )
        )

    parked = await HarnessLoop(runner(call), script()).run(GOAL, session_id="s")
    assert (parked.status, parked.passed, ran) == ("suspended", False, [])
    (request,) = parked.pending
    assert parked.verdict is not None
    assert parked.verdict.problem == "not_judged"

    again = await HarnessLoop(runner(), script()).run(GOAL, session_id="s")
    assert (again.status, again.pending) == ("suspended", parked.pending)

    done = await HarnessLoop(runner("Sent."), script(verdict(True, "good"))).run(
        GOAL, session_id="s", answers={request.request_id: True}
    )
    assert (done.passed, done.result, done.attempts, ran) == (True, "Sent.", 1, ["send"])


async def test_given_a_parked_attempt_when_streamed_then_the_last_event_says_what_is_pending() -> None:
    @tool
    async def send() -> str:
        """Send."""
        return "sent"

    runner = RuntimeRunner(
        RuntimeOptions(
            provider=script([ToolCall("c", "send", "{}"), Finish("tool_calls")]),
            execution_plane=LocalExecutionPlane().register(send),
            governance=Governance("ask"),
        )
    )

    events = [event async for event in HarnessLoop(runner, script()).run_streaming(GOAL)]

    finished = [event for event in events if isinstance(event, AttemptDoneEvent)]
    done = events[-1]
    assert isinstance(done, HarnessDoneEvent)
    assert done.pending == finished[0].pending
    assert done.status == "suspended"
