"""The in-memory log keeps every promise of a session log."""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest

from deepstrike.errors import CorruptLog, SessionBusy, SessionError, StaleWriter, UnknownSession
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.testing.log_conformance import LOG_CHECKS, LogCheck, check_session_log

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from deepstrike.sessions.base import SessionLog


async def in_memory() -> SessionLog:
    return InMemorySessionLog()


@pytest.mark.parametrize("check", LOG_CHECKS, ids=str)
async def test_the_in_memory_log_conforms(check: LogCheck) -> None:
    await check.run(in_memory)


async def test_the_whole_suite_passes_in_one_call() -> None:
    await check_session_log(in_memory)


async def test_the_ids_may_hold_lone_surrogates() -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("\ud800")
    await log.append("\ud800", [b"a"], 0, owner=owner)
    ref = await log.put_blob("\ud800", b"blob")
    assert (await log.sessions(), await log.read("\ud800"), await log.get_blob(ref)) == (["\ud800"], [b"a"], b"blob")


@pytest.mark.parametrize("seq", [0, 1, 2])
async def test_given_a_changed_byte_when_read_then_the_damaged_record_is_named(seq: int) -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("s")
    await log.append("s", [b"zero", b"one", b"two"], 0, owner=owner)
    records = log._kept["s"].records
    records[seq] = records[seq][:-1] + bytes([records[seq][-1] ^ 1])
    with pytest.raises(CorruptLog, match=rf"^record {seq} of session 's' is damaged: its checksum is [0-9a-f]{{8}}"):
        await log.read("s")


async def test_given_damage_before_it_when_read_from_a_later_record_then_it_is_given() -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("s")
    for seq, record in enumerate([b"zero", b"one", b"two"]):
        await log.append("s", [record], seq, owner=owner)
    log._kept["s"].records[0] = b"zero!"
    assert await log.read("s", 1) == [b"one", b"two"]


async def test_every_refusal_says_what_to_do() -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("s")
    refusals: list[tuple[type[SessionError], str]] = []
    for attempt in (
        log.acquire("s"),
        log.append("s", [b"x"], 4, owner=owner),
        log.append("s", [b"x"], 0, owner="else"),
        log.delete("s"),
        log.delete("t"),
        log.get_blob("none"),
    ):
        with pytest.raises(SessionError) as caught:
            await attempt
        refusals.append((type(caught.value), caught.value.message.split("; ")[-1]))
    assert refusals == [
        (SessionBusy, "wait for it, interrupt it or use another session id"),
        (StaleWriter, "read its log again and append from there"),
        (StaleWriter, "acquire() the session and read its log again before appending"),
        (SessionBusy, "interrupt it before deleting it"),
        (UnknownSession, "sessions() lists those there are"),
        (SessionError, "it was never put here or its session was deleted"),
    ]


async def test_a_record_costs_little_beyond_its_bytes() -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("s")
    for seq in range(1000):
        await log.append("s", [b"x" * 200], seq, owner=owner)
    kept = log._kept["s"]
    held = sys.getsizeof(kept.records) + sys.getsizeof(kept.seals) + sum(map(sys.getsizeof, kept.records))
    overhead = held / 1000 - 200
    assert overhead <= 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_given_a_fork_with_the_lock_held_when_the_child_goes_on_then_its_copy_is_its_own() -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    fork = get_context("fork")
    here, there = fork.Pipe()
    with log._lock:
        child = fork.Process(target=_go_on_in_the_child, args=(log, there))
        child.start()
    assert here.recv() == [b"a", b"child"]
    child.join()
    await log.append("s", [b"parent"], 1, owner=owner)
    assert await log.read("s") == [b"a", b"parent"]


def _go_on_in_the_child(log: InMemorySessionLog, answers: Connection) -> None:
    import asyncio

    async def write() -> list[bytes]:
        mine = await log.acquire("s")
        await log.append("s", [b"child"], 1, owner=mine)
        return await log.read("s")

    answers.send(asyncio.run(write()))
