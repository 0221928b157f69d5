"""Harnesses that are left, interrupted, out of time, parked; and taken up again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

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


async def test_given_a_stream_that_is_dropped_when_nobody_holds_it_then_what_it_waits_for_is_stopped() -> None:
    waiting = Waiting()
    stream = HarnessLoop(runner_of(script("one")), waiting).run_streaming(GOAL)
    events = aiter(stream)
    while (await anext(events)).type != "attempt_done":
        pass

    async def listen() -> None:
        await anext(events)

    listening = asyncio.create_task(listen())
    await waiting.begun.wait()

    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening

    assert waiting.let_go.is_set()


async def test_given_a_stream_in_mid_run_when_it_is_dropped_then_the_run_is_stopped() -> None:
    class Slow(Waiting):
        async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
            yield TextDelta("on ")
            await self.wait()

    slow = Slow()
    async for _ in HarnessLoop(runner_of(slow), script()).run_streaming(GOAL):
        break

    await slow.begun.wait()
    await slow.let_go.wait()


KILLED = """
import asyncio, os, signal, sys
from deepstrike import HarnessLoop, HarnessRequest, RuntimeOptions, RuntimeRunner, SqliteSessionLog
from deepstrike.providers.base import Finish
from deepstrike.stream import TextDelta

calls = 0

class Model:
    def __init__(self, *answers):
        self.answers = answers

    async def stream(self, request):
        global calls
        calls += 1
        text = "".join(part.text for turn in request.turns for part in getattr(turn, "parts", ()))
        yield TextDelta(self.answers["F1" in text or "second" in text])
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield Finish("stop")

runner = RuntimeRunner(RuntimeOptions(provider=Model("first", "second"), session_log=SqliteSessionLog(sys.argv[1])))
judge = Model('{"passed": false, "feedback": "F1"}', '{"passed": true, "feedback": "F2"}')
outcome = asyncio.run(HarnessLoop(runner, judge).run(HarnessRequest("x"), session_id="h"))
print(calls, outcome.result, outcome.passed, outcome.attempts, outcome.feedback)
"""


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_given_a_loop_that_is_killed_when_run_again_then_only_what_was_not_recorded_is_asked_for(
    at: int, tmp_path: Path
) -> None:
    log = str(tmp_path / "sessions.db")

    killed = subprocess.run([sys.executable, "-c", KILLED, log, str(at)], capture_output=True, text=True, timeout=60)
    assert killed.returncode == -9, killed.stderr
    done = subprocess.run([sys.executable, "-c", KILLED, log, "0"], capture_output=True, text=True, timeout=60)

    assert done.stdout == f"{5 - at} second True 2 F2\n", done.stderr
