"""Prompts come when they are due, by the clock of their place, once."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from deepstrike import RuntimeSignal, ScheduledPrompt, SignalGateway
from deepstrike.signals.schedule import Missed, times_after
from deepstrike.testing import ManualClock

START = 1_700_000_000_000  # 2023-11-14 22:13:20 UTC


def ms(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def came(gateway: SignalGateway) -> list[str]:
    """The goals that have come and wait."""
    goals = []
    while (entry := gateway.queue.take(None)) is not None:
        goals.append(str(entry.signal.payload["goal"]))
    return goals


async def test_given_a_time_to_come_when_it_is_there_then_the_prompt_arrives_as_documented_and_once() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        heard: list[RuntimeSignal] = []
        gateway.on_signal(heard.append)
        gateway.schedule(ScheduledPrompt(goal="standup", run_at_ms=START + 60_000))

        await clock.advance(59.9)
        before = list(heard)
        await clock.advance(600)

    assert before == []
    assert heard == [
        RuntimeSignal(kind="scheduled", source="cron", signal_type="job", payload={"goal": "standup"}),
    ]
    assert await gateway.next_signal() == heard[0]
    assert len(gateway.queue) == 0


@pytest.mark.parametrize("at", [START - 3_600_000, 0])
async def test_given_a_time_that_has_passed_when_scheduled_then_it_comes_once_and_at_once(at: int) -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        gateway.schedule(ScheduledPrompt("standup", at))
        at_once = came(gateway)
        await clock.advance(86_400)

    assert (at_once, came(gateway), gateway.scheduled()) == (["standup"], [], ())


async def test_given_equal_prompts_when_scheduled_then_they_are_one_also_after_it_came() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        names = {gateway.schedule(ScheduledPrompt("standup", START + 1_000)) for _ in range(2)}
        await clock.advance(2)
        names.add(gateway.schedule(ScheduledPrompt("standup", START + 1_000)))
        other = gateway.schedule(ScheduledPrompt("standup", START + 1_000, urgency="low"))

    assert (len(names), other in names, came(gateway)) == (1, False, ["standup", "standup"])


async def test_given_a_schedule_when_cancelled_then_it_never_comes() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        name = gateway.schedule(ScheduledPrompt("a", cron="* * * * *"))
        gateway.schedule(ScheduledPrompt("b", START + 1_000))
        first = (gateway.cancel(name), gateway.cancel(name), gateway.cancel(ScheduledPrompt("b", START + 1_000)))
        await clock.advance(600)

    assert (first, came(gateway)) == ((True, False, True), [])


async def test_given_a_cron_when_hours_pass_then_it_comes_at_each_of_its_times() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        times: list[int] = []
        gateway.on_signal(lambda _signal: times.append(clock.now_ms()))
        gateway.schedule(ScheduledPrompt("standup", cron="*/20 * * * *"))
        await clock.advance(3_600)

    assert times == [ms("2023-11-14T22:20:00"), ms("2023-11-14T22:40:00"), ms("2023-11-14T23:00:00")]


async def test_given_a_clock_that_is_set_forward_when_a_prompt_was_to_come_then_it_comes_within_seconds() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        gateway.schedule(ScheduledPrompt("standup", START + 1_800_000))
        await clock.advance(1)
        clock.set_wall(3_600)
        await clock.advance(5)

    assert came(gateway) == ["standup"]


async def test_given_a_clock_that_is_set_back_when_a_prompt_was_to_come_then_it_comes_once_and_no_later() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        gateway.schedule(ScheduledPrompt("standup", START + 2_000))
        clock.set_wall(-3_600)
        await clock.advance(5)
        soon = came(gateway)
        await clock.advance(7_200)

    assert (soon, came(gateway)) == (["standup"], [])


async def test_given_a_clock_that_is_set_back_when_a_cron_has_come_then_that_time_does_not_come_again() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway()
        gateway.schedule(ScheduledPrompt("standup", cron="0 23 * * *"))
        await clock.advance(3_600)  # it is 23:13 now
        clock.set_wall(-1_800)
        await clock.advance(3_600)

    assert came(gateway) == ["standup"]


def local(prompt: ScheduledPrompt, after: str, count: int) -> list[str]:
    """The next times by the clock of the prompt's place."""
    found = islice(times_after(prompt, ms(after)), count)
    return [datetime.fromtimestamp(at / 1000, ZoneInfo(prompt.timezone)).isoformat() for at in found]


@pytest.mark.parametrize(
    ("zone", "cron", "after", "times"),
    [
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T12:00:00",
            ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00:00",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "2026-10-24T12:00:00",
            ["2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:00:00+01:00"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28T12:00:00",
            ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        ),
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07T12:00:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        (
            "America/New_York",
            "*/30 2 * * *",
            "2026-03-07T12:00:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-10-24T23:30:00",
            ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"],
        ),
    ],
)
def test_given_a_clock_that_is_changed_in_spring_or_autumn_when_times_are_told_then_none_is_doubled_or_lost(
    zone: str, cron: str, after: str, times: list[str]
) -> None:
    assert local(ScheduledPrompt("standup", cron=cron, timezone=zone), after, len(times)) == times


async def test_given_the_doubled_hour_when_it_passes_then_the_prompt_comes_once() -> None:
    with ManualClock(ms("2026-10-25T00:00:00", "Europe/Berlin")) as clock:
        gateway = SignalGateway()
        gateway.schedule(ScheduledPrompt("standup", cron="30 2 * * *", timezone="Europe/Berlin"))
        await clock.advance(6 * 3_600)

    assert came(gateway) == ["standup"]


@pytest.mark.parametrize(("missed", "count"), [("once", 1), ("skip", 0), ("all", 3)])
async def test_given_times_that_nobody_saw_when_the_process_is_back_then_the_policy_says_how_many_come(
    missed: Missed, count: int, tmp_path: Path
) -> None:
    prompt = ScheduledPrompt("standup", cron="0 9 * * *", missed=missed)
    with ManualClock(ms("2026-05-01T08:00:00")):
        before = SignalGateway(tmp_path / "signals.db")
        before.schedule(prompt)
        before.destroy()
    with ManualClock(ms("2026-05-03T12:00:00")) as clock:
        after = SignalGateway(tmp_path / "signals.db")
        at_once = came(after)
        after.schedule(prompt)
        await clock.advance(24 * 3_600)
        next_day = came(after)
        after.destroy()

    assert (at_once, next_day) == (["standup"] * count, ["standup"])


async def test_given_years_of_minutes_that_nobody_saw_when_all_are_to_come_then_the_newest_hundred_do(
    tmp_path: Path,
) -> None:
    with ManualClock(ms("2020-01-01T00:00:00")):
        before = SignalGateway(tmp_path / "signals.db")
        before.schedule(ScheduledPrompt("tick", cron="* * * * *", missed="all"))
        before.destroy()
    with ManualClock(ms("2026-01-01T00:00:00")):
        after = SignalGateway(tmp_path / "signals.db")
        assert came(after) == ["tick"] * 100
        after.destroy()


async def test_given_a_full_queue_when_a_prompt_is_due_then_it_comes_when_there_is_room() -> None:
    with ManualClock(START) as clock:
        gateway = SignalGateway(capacity=1_000)
        for _ in range(1_000):
            gateway.ingest(RuntimeSignal("tick", {"goal": "tick"}))
        gateway.schedule(ScheduledPrompt("standup", START + 1_000))
        await clock.advance(10)
        waiting = came(gateway)
        await clock.advance(10)

    assert (waiting, came(gateway)) == (["tick"] * 1_000, ["standup"])


def test_given_the_start_of_these_tests_when_read_then_it_is_the_time_that_they_say() -> None:
    assert datetime.fromtimestamp(START / 1000, timezone.utc).isoformat() == "2023-11-14T22:13:20+00:00"
