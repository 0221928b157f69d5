"""A manual clock moves only when the test says so."""

from __future__ import annotations

import asyncio
from threading import Thread

import pytest

from deepstrike.clock import SystemClock, current_clock
from deepstrike.testing.clock import ManualClock


def test_given_no_event_loop_when_read_then_it_tells_its_start() -> None:
    with ManualClock(start_ms=5_000) as clock:
        assert current_clock() is clock
        assert current_clock().now_ms() == 5_000
    assert isinstance(current_clock(), SystemClock)


def test_given_a_clock_in_force_when_entered_again_then_it_refuses() -> None:
    with ManualClock() as clock:
        with pytest.raises(RuntimeError, match="in force already"), clock:
            pass
        assert current_clock() is clock


async def test_given_sleeps_when_advanced_then_each_wakes_at_its_own_time_in_order() -> None:
    woken: list[tuple[str, int]] = []

    async def nap(name: str, delay: float) -> None:
        await current_clock().sleep(delay)
        woken.append((name, current_clock().now_ms()))

    with ManualClock(start_ms=0) as clock:
        naps = [asyncio.create_task(nap(name, delay)) for name, delay in (("c", 3), ("a", 1), ("b", 1), ("d", 3.001))]
        await clock.advance(3)
        assert (woken, clock.now_ms()) == ([("a", 1000), ("b", 1000), ("c", 3000)], 3000)
        await clock.advance(0.001)
        assert woken[3:] == [("d", 3001)]
        await asyncio.gather(*naps)


async def test_given_a_task_that_sleeps_again_when_advanced_far_then_it_runs_all_its_steps_on_time() -> None:
    ticks: list[int] = []

    async def tick() -> None:
        for _ in range(5):
            await current_clock().sleep(0.1)
            ticks.append(current_clock().now_ms())

    with ManualClock(start_ms=0) as clock:
        ticking = asyncio.create_task(tick())
        await clock.advance(10)
        await ticking
        assert (ticks, clock.now_ms()) == ([100, 200, 300, 400, 500], 10_000)


async def test_given_a_timer_when_cancelled_then_it_never_runs() -> None:
    ran: list[str] = []
    with ManualClock() as clock:
        kept = clock.call_later(1, lambda: ran.append("kept"))
        gone = clock.call_later(1, lambda: ran.append("gone"))
        gone.cancel()
        gone.cancel()
        await clock.advance(1)
        kept.cancel()
    assert ran == ["kept"]


async def test_given_two_timers_of_one_moment_when_the_first_cancels_the_second_then_only_the_first_runs() -> None:
    ran: list[str] = []

    def first() -> None:
        ran.append("first")
        second.cancel()

    with ManualClock() as clock:
        clock.call_later(1, first)
        second = clock.call_later(1, lambda: ran.append("second"))
        await clock.advance(2)
    assert ran == ["first"]


async def test_given_a_delay_of_nothing_when_the_loop_turns_then_it_runs_without_advance() -> None:
    ran: list[int] = []
    with ManualClock() as clock:
        clock.call_later(0, lambda: ran.append(clock.now_ms()))
        await clock.sleep(0)
        await clock.sleep(-1)
    assert len(ran) == 1


async def test_given_a_cancelled_sleep_when_advanced_then_nobody_is_asleep() -> None:
    with ManualClock() as clock:
        nap = asyncio.create_task(clock.sleep(5))
        await clock.until_asleep()
        nap.cancel()
        with pytest.raises(asyncio.CancelledError):
            await nap
        waiting = asyncio.create_task(clock.until_asleep())
        await clock.advance(10)
        assert not waiting.done()
        second = asyncio.create_task(clock.sleep(1))
        await waiting
        await clock.advance(1)
        await second


async def test_given_several_sleepers_when_waited_for_then_it_returns_at_that_number() -> None:
    with ManualClock() as clock:
        waiting = asyncio.create_task(clock.until_asleep(3))
        naps = [asyncio.create_task(clock.sleep(1)) for _ in range(2)]
        await clock.advance(0)
        assert not waiting.done()
        naps.append(asyncio.create_task(clock.sleep(1)))
        await waiting
        await clock.advance(1)
        await asyncio.gather(*naps)


async def test_given_a_sleeper_in_another_thread_when_advanced_here_then_it_wakes_there() -> None:
    clock = ManualClock(start_ms=0)
    seen: list[int] = []

    async def nap() -> None:
        await clock.sleep(30)
        seen.append(clock.now_ms())

    thread = Thread(target=lambda: asyncio.run(nap()))
    thread.start()
    await clock.until_asleep()
    await clock.advance(60)
    await asyncio.to_thread(thread.join)
    assert len(seen) == 1


async def test_given_a_loop_that_is_closed_when_its_timer_is_due_then_it_is_forgotten() -> None:
    clock = ManualClock(start_ms=0)
    ran: list[str] = []

    async def schedule() -> None:
        clock.call_later(1, lambda: ran.append("ran"))

    await asyncio.to_thread(lambda: asyncio.run(schedule()))
    await clock.advance(2)
    assert (ran, clock.now_ms()) == ([], 2000)


async def test_given_small_steps_when_they_add_up_then_no_time_is_lost() -> None:
    with ManualClock(start_ms=0) as clock:
        for _ in range(1000):
            await clock.advance(0.0007)
        assert clock.now_ms() == 700


async def test_given_an_alarm_when_advanced_then_it_rings_at_its_time_without_a_loop_of_its_own() -> None:
    rung: list[int] = []
    with ManualClock(start_ms=0) as clock:
        clock.alarm(2, lambda: rung.append(clock.now_ms()))
        clock.alarm(1, lambda: rung.append(-1)).cancel()
        await clock.advance(5)

    assert rung == [2_000]


async def test_given_a_wall_clock_that_is_set_when_time_passes_then_only_it_is_off() -> None:
    clock = ManualClock(start_ms=10_000)
    clock.set_wall(-3)
    await clock.advance(1)

    assert (clock.now_ms(), clock.wall_ms()) == (11_000, 8_000)
