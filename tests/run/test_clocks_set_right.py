"""A machine whose clock was ahead while a session was recorded, and was put right: time limits hold all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from doubles import Script, calls, done_of, events_of, runner_of, say

from deepstrike import InMemorySessionLog, ModelRequest
from deepstrike.clock import AheadClock, not_before
from deepstrike.providers.base import ModelEvent, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.testing import ManualClock

NOW = 1_700_000_000_000
AHEAD = NOW + 86_400_000


class Stalled:
    """A model that begins to answer and never goes on."""

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("so ")
        await asyncio.Event().wait()


async def limited(work: object, clock: ManualClock) -> str:
    """How a run of 1.5 s ends that nothing else ends."""
    task = asyncio.ensure_future(events_of(work))
    await clock.advance(1.4)
    assert not task.done()
    await clock.advance(0.2)
    return done_of(await asyncio.wait_for(task, 5)).status


async def times_of(log: InMemorySessionLog) -> list[int]:
    return [json.loads(line)["at"] for line in await log.read("s")]


@pytest.mark.parametrize("same_runner", [True, False])
async def test_given_a_session_of_a_clock_that_was_ahead_when_a_goal_follows_then_its_timeout_holds(
    same_runner: bool,
) -> None:
    log = InMemorySessionLog()

    class FirstQuick(Stalled):
        asked = 0

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.asked += 1
            events = Script(say("hi")).stream(request) if self.asked == 1 else super().stream(request)
            async for event in events:
                yield event

    runner = runner_of(FirstQuick(), log=log, timeout_ms=1_500)
    with ManualClock(AHEAD):
        await runner.run("one", session_id="s")
    after = runner if same_runner else runner_of(Stalled(), log=log, timeout_ms=1_500)
    with ManualClock(NOW) as clock:
        assert await limited(after.run_streaming("two", session_id="s"), clock) == "timeout"
    times = await times_of(log)
    assert times == sorted(times)
    assert times[-1] - AHEAD == 1_500


async def test_given_a_goal_of_a_clock_that_was_ahead_when_resumed_then_its_timeout_counts_on() -> None:
    log = InMemorySessionLog()

    async def quick() -> str:
        return "A"

    first = runner_of(Script(calls(ToolCall("c1", "quick", "{}"))), quick, log=log, max_turns=1, timeout_ms=1_500)
    with ManualClock(AHEAD):
        await first.run("one", session_id="s")
    with ManualClock(NOW) as clock:
        work = runner_of(Stalled(), quick, log=log, timeout_ms=1_500).resume("s")
        assert await limited(work, clock) == "timeout"


async def test_given_a_moment_behind_us_when_time_goes_on_from_there_then_only_that_time_is_shifted() -> None:
    clock = ManualClock(NOW)
    assert not_before(clock, NOW) is clock
    ahead = not_before(clock, AHEAD)
    assert isinstance(ahead, AheadClock)
    assert (ahead.now_ms(), ahead.wall_ms()) == (AHEAD, NOW)
    rung: list[str] = []
    ahead.call_later(1.0, lambda: rung.append("later"))
    ahead.alarm(1.0, lambda: rung.append("alarm"))
    asleep = asyncio.ensure_future(ahead.sleep(1.0))
    await clock.until_asleep()
    await clock.advance(1.0)
    await asyncio.wait_for(asleep, 5)
    assert (sorted(rung), ahead.now_ms()) == (["alarm", "later"], AHEAD + 1_000)
