"""What ends a run ends its sub-agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from families import Cast, delegates, results_of, runner_with

from deepstrike import AgentEvent, InMemorySessionLog, ModelRequest, TextDelta
from deepstrike.providers.base import ModelEvent
from deepstrike.records import decode_record
from deepstrike.testing import ManualClock
from deepstrike.wire.event import Ended, Settled
from deepstrike.wire.message import Usage


class Stuck(Cast):
    """A model whose sub-agents talk for ever."""

    def __init__(self) -> None:
        tasks = [delegates("talk", call_id="a"), delegates("talk", call_id="b")]
        super().__init__({"go": [tasks, lambda request: "\n".join(results_of(request))]})
        self.talking = asyncio.Event()
        self.live = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """As `Cast`, or words without end."""
        async for event in self._said(request) if self._is_child(request) else super().stream(request):
            yield event

    def _is_child(self, request: ModelRequest) -> bool:
        return "work on one task" in request.system_stable

    async def _said(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(("talk", request))
        self.live += 1
        try:
            yield Usage(10, 1)
            while True:
                yield TextDelta("on ")
                if len(self.asked("talk")) == 2:
                    self.talking.set()
                await asyncio.sleep(0.001)
        finally:
            self.live -= 1


async def ends_of(log: InMemorySessionLog) -> dict[str, str]:
    """How each session ended."""
    found = {}
    for session in await log.sessions():
        event = decode_record((await log.read(session))[-1]).event
        found[session] = event.status if isinstance(event, Ended) else type(event).__name__
    return found


async def test_an_interrupt_ends_all_and_counts_what_they_used() -> None:
    """Case SUB-04."""
    model, log = Stuck(), InMemorySessionLog()
    runner = runner_with(model, log=log)
    run = asyncio.ensure_future(runner.run("go", session_id="s").result())
    await model.talking.wait()
    runner.interrupt("s")
    result = await run
    assert (result.status, result.iterations, model.live) == ("user_abort", 3, 0)
    assert await ends_of(log) == {"s": "user_abort", "s/2": "user_abort", "s/3": "user_abort"}
    asked = len(model.requests)
    await asyncio.sleep(0.01)
    assert len(model.requests) == asked
    assert len(asyncio.all_tasks()) == 1


async def test_a_time_limit_ends_all_and_leaves_the_parent_time_to_say_so() -> None:
    """Case SUB-04."""
    model, log = Stuck(), InMemorySessionLog()
    with ManualClock() as clock:
        run = asyncio.ensure_future(runner_with(model, log=log, timeout_ms=1_000).run("go", session_id="s").result())
        await model.talking.wait()
        await clock.advance(0.95)
        result = await run
    assert (result.status, result.text.count("(timeout)")) == ("completed", 2)


async def test_dropping_the_stream_ends_all() -> None:
    model, log = Stuck(), InMemorySessionLog()
    async with runner_with(model, log=log).run_streaming("go", session_id="s") as run:
        async for event in run:
            if isinstance(event, AgentEvent) and isinstance(event.event, TextDelta):
                break
    assert model.live == 0
    assert set((await ends_of(log)).values()) == {"user_abort"}


async def test_one_child_can_be_interrupted_alone() -> None:
    model, log = Stuck(), InMemorySessionLog()
    runner = runner_with(model, log=log)
    run = asyncio.ensure_future(runner.run("go", session_id="s").result())
    await model.talking.wait()
    runner.interrupt("s/2")
    while (await ends_of(log))["s/2"] != "user_abort":
        await asyncio.sleep(0.001)
    assert model.live == 1
    runner.interrupt("s/3")
    result = await run
    assert (result.status, result.text.count("(user_abort): the user interrupted")) == ("completed", 2)


@pytest.mark.parametrize("stop_at", range(40))
async def test_a_run_that_is_left_at_any_event_leaves_whole_logs(stop_at: int) -> None:
    tree = [delegates("a", call_id="a"), delegates("b", call_id="b")]
    log = InMemorySessionLog()
    model = Cast({"go": [tree, "ok"], "a": [[delegates("c")], "a"], "b": ["b"], "c": ["c"]})
    count = 0
    async with runner_with(model, log=log).run_streaming("go", session_id="s") as run:
        async for _ in run:
            count += 1
            if count > stop_at:
                break
    assert len(asyncio.all_tasks()) == 1
    model = Cast({goal: [goal.upper()] * 3 for goal in ("go", "a", "b", "c")})
    if "s" in await log.sessions():
        result = await runner_with(model, log=log).resume("s")
        assert result.status == "completed"


async def test_what_a_stopped_child_used_stands_in_the_log_of_its_parent() -> None:
    model, log = Stuck(), InMemorySessionLog()
    runner = runner_with(model, log=log)
    run = asyncio.ensure_future(runner.run("go", session_id="s").result())
    await model.talking.wait()
    runner.interrupt()
    await run
    settled = [event for line in await log.read("s") if isinstance(event := decode_record(line).event, Settled)]
    assert [(event.result.error_kind, event.spent and event.spent.turns) for event in settled] == [("cancelled", 1)] * 2
