"""A run for each scheduled prompt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from doubles import Script, kinds_of, say, user_texts

from deepstrike import (
    ConfigError,
    InMemorySessionLog,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    RuntimeSignal,
    ScheduledPrompt,
    SignalGateway,
    TextDelta,
)
from deepstrike.providers.base import Finish, LLMProvider, ModelEvent, ModelRequest
from deepstrike.stream import RunResult
from deepstrike.testing import ManualClock

START = 1_700_000_000_000


def listener(gateway: SignalGateway, model: LLMProvider, log: InMemorySessionLog | None = None) -> RuntimeRunner:
    return RuntimeRunner(RuntimeOptions(provider=model, session_log=log, signal_source=gateway))


class Held:
    """A provider that answers when it is let go; counts how many wait."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0
        self.go = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self.go.wait()
        finally:
            self.waiting -= 1
        yield TextDelta("ok")
        yield Finish("stop")


async def until(results: list[RunResult], count: int) -> None:
    while len(results) < count:
        await asyncio.sleep(0)


async def test_given_prompts_when_they_fall_due_then_each_gets_a_run_and_a_session_of_its_own() -> None:
    with ManualClock(START) as clock:
        gateway, model, results = SignalGateway(), Script(say("done")), list[RunResult]()
        runner = listener(gateway, model)
        listening = asyncio.create_task(runner.listen(on_result=results.append))
        gateway.schedule(ScheduledPrompt("standup", START + 60_000))
        gateway.schedule(ScheduledPrompt("report", cron="0 * * * *"))
        gateway.schedule(ScheduledPrompt("diary", START + 90_000, session_id="diary"))
        for count, seconds in enumerate((60, 30, 3_510), 1):
            await clock.advance(seconds)
            await until(results, count)
        gateway.destroy()
        await listening

    assert [user_texts(turns) for turns in model.turns] == [["standup"], ["diary"], ["report"]]
    assert results[1].session_id == "diary"
    own = {results[0].session_id, results[2].session_id}
    assert len(own) == 2
    assert all(session.startswith("scheduled-") for session in own)


async def test_given_a_run_that_fails_when_another_prompt_is_due_then_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    gateway, results = SignalGateway(), list[RunResult]()
    model = Script(ValueError("no model"), say("done"))
    runner = listener(gateway, model)
    with caplog.at_level(logging.WARNING, "deepstrike"):
        listening = asyncio.create_task(runner.listen(max_concurrency=1, on_result=results.append))
        gateway.schedule(ScheduledPrompt("one", 0))
        gateway.schedule(ScheduledPrompt("two", 0))
        await until(results, 2)
        gateway.destroy()
        await listening

    assert [result.status for result in results] == ["error", "completed"]
    assert any("ValueError: no model" in record.getMessage() for record in caplog.records)


async def test_given_more_prompts_than_places_when_they_are_due_then_the_others_wait() -> None:
    gateway, model, results = SignalGateway(), Held(), list[RunResult]()
    for number in range(6):
        gateway.schedule(ScheduledPrompt(f"goal {number}", 0))
    listening = asyncio.create_task(listener(gateway, model).listen(max_concurrency=2, on_result=results.append))
    while model.waiting < 2:
        await asyncio.sleep(0)
    model.go.set()
    await until(results, 6)
    gateway.destroy()
    await listening

    assert model.most == 2


async def test_given_a_listener_when_it_is_cancelled_then_its_runs_are_stopped_and_nothing_is_left() -> None:
    gateway, model, log = SignalGateway(), Held(), InMemorySessionLog()
    gateway.schedule(ScheduledPrompt("standup", 0, session_id="s"))
    runner = listener(gateway, model, log)
    listening = asyncio.create_task(runner.listen())
    while model.waiting < 1:
        await asyncio.sleep(0)

    listening.cancel()
    await asyncio.wait({listening})

    assert listening.cancelled()
    assert model.waiting == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    model.go.set()
    assert (await runner.resume("s")).status == "completed"


@pytest.mark.parametrize("kept", [False, True])
async def test_given_a_run_that_was_cut_off_when_somebody_listens_again_then_its_session_goes_on(
    kept: bool, tmp_path: Path
) -> None:
    place = tmp_path / "signals.db" if kept else None
    gateway, held, log, results = SignalGateway(place), Held(), InMemorySessionLog(), list[RunResult]()
    gateway.schedule(ScheduledPrompt("standup", 0))
    listening = asyncio.create_task(listener(gateway, held, log).listen())
    while held.waiting < 1:
        await asyncio.sleep(0)
    listening.cancel()
    await asyncio.wait({listening})
    if kept:  # as another process finds it
        gateway.destroy()
        gateway = SignalGateway(place)

    model = Script(say("done"))
    listening = asyncio.create_task(listener(gateway, model, log).listen(on_result=results.append))
    await until(results, 1)
    left = len(gateway.queue)
    gateway.destroy()
    await listening

    assert await log.sessions() == [results[0].session_id]
    assert [user_texts(turns) for turns in model.turns] == [["standup"]]
    assert left == 0
    assert await kinds_of(log, results[0].session_id) == ["started", "ended", "resumed", "replied", "ended"]


async def test_given_a_listener_when_its_runner_is_closed_then_it_ends() -> None:
    gateway, model = SignalGateway(), Held()
    gateway.schedule(ScheduledPrompt("standup", 0))
    results: list[RunResult] = []
    async with listener(gateway, model) as runner:
        listening = asyncio.create_task(runner.listen(on_result=results.append))
        while model.waiting < 1:
            await asyncio.sleep(0)
    await listening

    assert [result.status for result in results] == ["user_abort"]


async def test_given_an_active_run_when_somebody_listens_then_prompts_are_left_to_the_listener() -> None:
    gateway, held, results = SignalGateway(), Held(), list[RunResult]()
    busy = asyncio.create_task(listener(gateway, held).run("Go.", session_id="busy").result())
    while held.waiting < 1:
        await asyncio.sleep(0)
    model = Script(say("done"))
    listening = asyncio.create_task(listener(gateway, model).listen(on_result=results.append))
    gateway.schedule(ScheduledPrompt("standup", 0))
    await until(results, 1)
    held.go.set()
    await busy
    gateway.destroy()
    await listening

    assert [user_texts(turns) for turns in model.turns] == [["standup"]]


async def test_given_a_source_of_ones_own_when_it_gives_a_prompt_then_it_gets_a_run() -> None:
    class Once:
        def __init__(self) -> None:
            self.given = False

        async def next_signal(self) -> RuntimeSignal | None:
            if self.given:
                await asyncio.Event().wait()
            self.given = True
            return RuntimeSignal("scheduled", {"goal": "standup"}, "calendar", "job")

    results: list[RunResult] = []
    model = Script(say("done"))
    runner = RuntimeRunner(RuntimeOptions(provider=model, signal_source=Once()))
    listening = asyncio.create_task(runner.listen(on_result=results.append))
    await until(results, 1)
    listening.cancel()
    await asyncio.wait({listening})

    assert user_texts(model.turns[0]) == ["standup"]


async def test_given_no_source_or_no_place_when_somebody_would_listen_then_the_error_says_so() -> None:
    with pytest.raises(ConfigError, match="signal_source"):
        await RuntimeRunner(RuntimeOptions(provider=Script(say("ok")))).listen()
    with pytest.raises(ConfigError, match="max_concurrency"):
        await listener(SignalGateway(), Script(say("ok"))).listen(max_concurrency=0)


async def test_given_on_result_that_raises_when_a_run_ends_then_listening_goes_on() -> None:
    gateway, seen = SignalGateway(), list[str]()

    def fails(result: RunResult) -> None:
        seen.append(result.text)
        raise RunFailed("no", result=result)

    gateway.schedule(ScheduledPrompt("one", 0))
    gateway.schedule(ScheduledPrompt("two", 0))
    listening = asyncio.create_task(listener(gateway, Script(say("done"))).listen(on_result=fails))
    while len(seen) < 2:
        await asyncio.sleep(0)
    gateway.destroy()
    await listening

    assert seen == ["done", "done"]
