"""Work on one thing is done one piece after the other, in the order it was asked for, off the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from deepstrike.sessions.lane import Lane, in_thread


async def test_given_work_from_many_tasks_when_it_is_run_then_it_is_done_in_the_order_it_was_asked_for() -> None:
    lane, done, alone = Lane(), list[int](), threading.Lock()

    def work(number: int) -> int:
        assert alone.acquire(blocking=False)
        done.append(number)
        alone.release()
        return number

    def piece(number: int) -> asyncio.Task[int]:
        return asyncio.create_task(lane.run(lambda: work(number)))

    assert await asyncio.gather(*(piece(number) for number in range(50))) == list(range(50))
    assert done == list(range(50))


async def test_given_work_that_raises_when_it_is_run_then_its_asker_gets_that_and_the_next_begins() -> None:
    lane = Lane()

    def fail() -> None:
        raise OSError("no")

    first = asyncio.create_task(lane.run(fail))
    assert await lane.run(lambda: "next") == "next"
    with pytest.raises(OSError, match=r"^no$"):
        await first


async def test_given_work_under_way_when_its_asker_is_cancelled_then_what_comes_later_waits_for_it() -> None:
    lane, begun, go_on, seen = Lane(), threading.Event(), threading.Event(), list[str]()

    def slow() -> None:
        begun.set()
        assert go_on.wait(20)
        seen.append("slow")

    first = asyncio.create_task(lane.run(slow))
    assert await in_thread(lambda: begun.wait(20))
    waiting = asyncio.create_task(lane.run(lambda: seen.append("given up before it began")))
    await asyncio.sleep(0)
    for task in (first, waiting):
        task.cancel()
    await asyncio.wait({first, waiting})
    last = asyncio.create_task(lane.run(lambda: seen.append("last")))
    await asyncio.sleep(0)
    assert (lane.enter(), seen) == (False, [])
    go_on.set()
    await last
    assert seen == ["slow", "last"]


async def test_given_a_result_that_nobody_waits_for_when_it_comes_then_it_is_undone() -> None:
    begun, go_on, undone = threading.Event(), threading.Event(), threading.Event()
    given: list[str] = []

    def make() -> str:
        begun.set()
        assert go_on.wait(20)
        return "made"

    def undo(value: str) -> None:
        given.append(value)
        undone.set()

    task = asyncio.create_task(in_thread(make, undo))
    assert await in_thread(lambda: begun.wait(20))
    task.cancel()
    await asyncio.wait({task})
    go_on.set()
    assert await in_thread(lambda: undone.wait(20))
    assert given == ["made"]


async def test_given_a_lane_that_is_entered_when_it_is_left_then_the_next_begins() -> None:
    lane = Lane()
    assert (lane.enter(), lane.enter()) == (True, False)
    waiting = asyncio.create_task(lane.run(lambda: "begun"))
    await asyncio.sleep(0)
    lane.leave()
    assert await waiting == "begun"


async def test_given_a_lane_in_use_when_it_is_to_be_held_then_that_waits_or_is_given_up() -> None:
    lane, go_on = Lane(), threading.Event()
    working = asyncio.create_task(lane.run(lambda: go_on.wait(20)))
    await asyncio.sleep(0)
    assert not lane.hold(0.01)
    holding = asyncio.create_task(in_thread(lambda: lane.hold(20)))
    go_on.set()
    assert (await working, await holding, lane.enter()) == (True, True, False)
    lane.leave()
    assert lane.enter()
