"""A limit on calls in flight over loops and threads."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from deepstrike.providers.transport.slots import Slots, shared_slots


async def waiting(slots: Slots) -> asyncio.Task[None]:
    task = asyncio.ensure_future(slots.acquire())
    await asyncio.sleep(0)
    return task


async def test_given_full_slots_when_one_is_released_then_the_longest_waiting_gets_it() -> None:
    slots = Slots(1)
    await slots.acquire()
    first, second = await waiting(slots), await waiting(slots)
    slots.release()
    await first
    assert not second.done()
    slots.release()
    await second


async def test_given_a_waiting_call_when_cancelled_then_it_takes_no_slot() -> None:
    slots = Slots(1)
    await slots.acquire()
    gone, stays = await waiting(slots), await waiting(slots)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    slots.release()
    await asyncio.wait_for(stays, 5)


async def test_given_a_call_cancelled_just_when_it_is_granted_a_slot_then_the_slot_goes_on() -> None:
    slots = Slots(1)
    await slots.acquire()
    gone, stays = await waiting(slots), await waiting(slots)
    slots.release()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await asyncio.wait_for(stays, 5)


def test_given_loops_in_many_threads_when_they_share_slots_then_the_limit_holds_and_all_get_through() -> None:
    slots, lock, held, most = Slots(3), threading.Lock(), [0], [0]

    async def work() -> None:
        for _ in range(20):
            await slots.acquire()
            with lock:
                held[0] += 1
                most[0] = max(most[0], held[0])
            await asyncio.sleep(0)
            with lock:
                held[0] -= 1
            slots.release()

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (held[0], 1 <= most[0] <= 3) == (0, True)


async def test_given_a_waiting_call_whose_loop_is_gone_when_released_then_the_next_one_gets_the_slot() -> None:
    slots = Slots(1)
    await slots.acquire()
    other = asyncio.new_event_loop()

    def abandon() -> None:
        task = other.create_task(slots.acquire())
        other.run_until_complete(asyncio.sleep(0))
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        other.close()

    thread = threading.Thread(target=abandon)
    thread.start()
    thread.join()
    stays = await waiting(slots)
    slots.release()
    await asyncio.wait_for(stays, 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
async def test_given_full_slots_when_the_process_forks_then_the_child_has_its_own() -> None:
    slots = Slots(1)
    await slots.acquire()
    slots._pid = -1  # as a child sees it
    await asyncio.wait_for(slots.acquire(), 5)


def test_given_one_address_and_limit_when_shared_then_the_slots_are_the_same() -> None:
    assert shared_slots("http://a.test", 2) is shared_slots("http://a.test", 2)
    assert shared_slots("http://a.test", 2) is not shared_slots("http://a.test", 3)


async def test_given_no_limit_of_the_users_when_many_call_then_a_hundred_are_in_flight_and_the_rest_wait() -> None:
    slots = shared_slots("http://default.test/v1")
    assert slots is shared_slots("http://default.test/v1", None)
    assert slots is not shared_slots("http://default.test/v1", 101)
    for _ in range(100):
        await slots.acquire()
    late = asyncio.ensure_future(slots.acquire())
    await asyncio.sleep(0)
    assert not late.done()
    slots.release()
    await late


def test_given_addresses_without_number_when_shared_then_only_so_many_are_remembered() -> None:
    first = shared_slots("http://0.test")
    assert shared_slots("http://0.test") is first
    for number in range(1, 1_025):
        shared_slots(f"http://{number}.test")
    assert shared_slots("http://0.test") is not first
