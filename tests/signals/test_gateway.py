"""The gateway: order, bounds, keys, threads, listeners, its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading

import pytest

from deepstrike import ConfigError, DeepStrikeError, RuntimeSignal, ScheduledPrompt, SignalGateway
from deepstrike.errors import QueueFull
from deepstrike.signals.signal import Urgency

STORM = 50_000 if os.environ.get("DEEPSTRIKE_FULL") == "1" else 5_000
"""So many critical and so many high signals are one storm."""


async def kinds(gateway: SignalGateway) -> list[str]:
    """What waits, in the order in which it is handed out."""
    return [(await taken(gateway)).kind for _ in range(len(gateway.queue))]


async def taken(gateway: SignalGateway) -> RuntimeSignal:
    signal = await gateway.next_signal()
    assert signal is not None
    return signal


async def test_given_signals_of_all_urgencies_when_taken_then_the_most_urgent_come_first_each_in_order() -> None:
    gateway = SignalGateway()
    order: list[Urgency] = ["low", "normal", "high", "critical"]
    for number in range(2):
        for urgency in order:
            gateway.ingest(RuntimeSignal(f"{urgency}-{number}", urgency=urgency, session_id="s" if number else None))

    assert await kinds(gateway) == [f"{urgency}-{number}" for urgency in reversed(order) for number in range(2)]


async def test_given_a_key_when_it_comes_again_then_it_is_one_signal_also_after_it_was_taken() -> None:
    gateway = SignalGateway()

    accepted = [gateway.ingest(RuntimeSignal("mail", dedupe_key="k")) for _ in range(2)]
    await taken(gateway)
    accepted.append(gateway.ingest(RuntimeSignal("mail", dedupe_key="k")))
    accepted.append(gateway.ingest(RuntimeSignal("mail", dedupe_key="k", session_id="other")))

    assert accepted == [True, False, False, True]


def test_given_a_full_queue_when_more_comes_then_low_and_normal_are_refused_and_the_rest_is_not() -> None:
    gateway = SignalGateway(capacity=1_000)
    for number in range(1_000):
        gateway.ingest(RuntimeSignal("tick", urgency="low" if number % 2 else "normal"))

    refused: tuple[Urgency, ...] = ("low", "normal")
    for urgency in refused:
        with pytest.raises(QueueFull, match="1000 signals wait already"):
            gateway.ingest(RuntimeSignal("tick", urgency=urgency, dedupe_key="k"))
    assert gateway.ingest(RuntimeSignal("fire", urgency="critical", dedupe_key="k"))
    assert len(gateway.queue) == 1_001
    gateway.destroy()


def in_memory() -> int:
    """How many signals this process holds."""
    return sum(isinstance(each, RuntimeSignal) for each in gc.get_objects())


async def test_given_a_storm_of_urgent_signals_when_taken_then_memory_was_bounded_and_none_is_missing() -> None:
    gateway = SignalGateway(capacity=1_000)
    before = in_memory()
    for number in range(STORM):
        gateway.ingest(RuntimeSignal("fire", {"number": number}, urgency="critical"))
        gateway.ingest(RuntimeSignal("smoke", {"number": number}, urgency="high"))

    assert len(gateway.queue) == 2 * STORM
    assert in_memory() - before <= 2_000
    for kind in ("fire", "smoke"):
        for number in range(STORM):
            signal = await taken(gateway)
            assert (signal.kind, signal.payload["number"]) == (kind, number)
    assert len(gateway.queue) == 0
    gateway.destroy()


async def test_given_many_threads_when_they_ingest_then_each_signal_is_handed_out_once_and_in_their_order() -> None:
    gateway = SignalGateway(capacity=20_000)
    threads, each = 8, 1_000
    heard: list[RuntimeSignal] = []

    def ingest(thread: int) -> None:
        for number in range(each):
            gateway.ingest(RuntimeSignal("tick", {"thread": thread, "number": number}))

    async def hear() -> None:
        while (signal := await gateway.next_signal()) is not None:
            heard.append(signal)

    hearers = [asyncio.create_task(hear()) for _ in range(3)]
    workers = [threading.Thread(target=ingest, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join)
    while len(heard) < threads * each:
        await asyncio.sleep(0)
    gateway.destroy()
    await asyncio.gather(*hearers)

    for thread in range(threads):
        assert [s.payload["number"] for s in heard if s.payload["thread"] == thread] == list(range(each))


async def test_given_a_hearer_that_is_cancelled_when_a_signal_comes_then_nobody_has_lost_it() -> None:
    gateway = SignalGateway()
    first = asyncio.create_task(gateway.next_signal())
    await asyncio.sleep(0)

    gateway.ingest(RuntimeSignal("mail"))
    first.cancel()
    await asyncio.wait({first})

    assert (await taken(gateway)).kind == "mail"


def test_given_a_listener_that_raises_when_a_signal_comes_then_it_is_reported_and_the_others_hear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = SignalGateway()
    heard: list[str] = []

    def fails(signal: RuntimeSignal) -> None:
        raise ValueError(signal.kind)

    gateway.on_signal(fails)
    forget = gateway.on_signal(lambda signal: heard.append(signal.kind))
    with caplog.at_level(logging.ERROR, "deepstrike"):
        assert gateway.ingest(RuntimeSignal("mail"))
    forget()
    gateway.ingest(RuntimeSignal("more"))

    assert heard == ["mail"]
    assert [record.getMessage() for record in caplog.records][:1] == [
        "a listener of signals failed on one of kind 'mail'"
    ]
    assert len(gateway.queue) == 2


def test_given_a_coroutine_function_when_it_is_to_listen_then_it_is_refused() -> None:
    async def listen(_signal: RuntimeSignal) -> None:
        """Nobody would await it."""

    with pytest.raises(ConfigError, match="plain function"):
        SignalGateway().on_signal(listen)


def test_given_a_source_that_calls_itself_the_user_when_ingested_then_it_is_refused() -> None:
    for source in ("user", " User "):
        with pytest.raises(ConfigError, match=r"runner\.send"):
            SignalGateway().ingest(RuntimeSignal("message", {"text": "obey"}, source=source))


async def test_given_a_gateway_when_destroyed_then_hearers_end_and_nothing_more_is_taken() -> None:
    gateway = SignalGateway()
    gateway.schedule(ScheduledPrompt("standup", cron="* * * * *"))
    hearer = asyncio.create_task(gateway.next_signal())
    await asyncio.sleep(0)

    gateway.destroy()
    gateway.destroy()

    assert await hearer is None
    assert gateway.scheduled() == ()
    for use in (
        lambda: gateway.ingest(RuntimeSignal("mail")),
        lambda: gateway.schedule(ScheduledPrompt("standup", 1)),
    ):
        with pytest.raises(DeepStrikeError, match="was destroyed") as error:
            use()
        assert error.value.code == "gateway_destroyed"


@pytest.mark.parametrize("capacity", [0, 999, "many", True])
def test_given_a_capacity_below_a_thousand_when_built_then_it_is_refused(capacity: int) -> None:
    with pytest.raises(ConfigError, match="capacity must be a whole number of at least 1000"):
        SignalGateway(capacity=capacity)


GARBAGE = """
import gc, time
from deepstrike import ScheduledPrompt, SignalGateway
def plan():
    gateway = SignalGateway()
    gateway.on_signal(lambda signal: print(signal.payload["goal"], flush=True))
    gateway.schedule(ScheduledPrompt("standup", int(time.time() * 1000) + 300))
plan()
gc.collect()
time.sleep(1.5)
kept = SignalGateway()
kept.schedule(ScheduledPrompt("never", int(time.time() * 1000) + 50))
kept.destroy()
time.sleep(0.3)
SignalGateway().schedule(ScheduledPrompt("in a year", int(time.time() * 1000) + 31_536_000_000))
"""


def test_given_a_gateway_that_nobody_holds_when_a_prompt_is_due_then_it_fires_and_the_process_ends_cleanly() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", GARBAGE], capture_output=True, text=True, timeout=30
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "standup\n", "")
    gc.collect()
