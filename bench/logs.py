"""What keeping a session costs: an append beside a raw one of the same bytes, and a turn beside one in memory."""

from __future__ import annotations

import gc
import os
import sqlite3
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clocks import cpu_us
from bench.subject import Scripted, runner, said_by
from deepstrike import InMemorySessionLog
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from deepstrike.sessions.base import SessionLog

Samples = list[float]
APPENDS = 4_000
# What a tool turn writes: the reply, its judgement and the call's beginning in one batch, then the result.
BATCHES = ([os.urandom(n // 2).hex().encode() for n in (420, 160, 120)], [os.urandom(100).hex().encode()])


def raw_appends(folder: Path) -> Samples:
    """CPU of a transaction that inserts a batch, by whoever writes to SQLite directly (WAL, synchronous=NORMAL)."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, session TEXT, record BLOB)")
    samples: Samples = []
    for _ in range(4):
        before = cpu_us()
        for number in range(APPENDS):
            connection.execute("BEGIN IMMEDIATE")
            rows = [("s", record) for record in BATCHES[number & 1]]
            connection.executemany("INSERT INTO log (session, record) VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        samples.append((cpu_us() - before) / APPENDS)
    connection.close()
    return samples[1:]


async def our_appends(log: SessionLog) -> Samples:
    """CPU of an append of the same batches to a session log."""
    owner = await log.acquire("s")
    samples: Samples = []
    seq = 0
    for _ in range(4):
        before = cpu_us()
        for number in range(APPENDS):
            seq = await log.append("s", BATCHES[number & 1], seq, owner=owner) + 1
        samples.append((cpu_us() - before) / APPENDS)
    await log.release("s", owner)
    return samples[1:]


async def append(who: str, folder: Path) -> Samples:
    """CPU of an append to a SQLite file, by who is asked for."""
    return raw_appends(folder) if who == "sqlite" else await our_appends(SqliteSessionLog(folder / "ours.db"))


def turn_of(make: Callable[[Path], SessionLog], turns: int) -> Callable[[str, Path], Coroutine[None, None, Samples]]:
    """CPU that a turn costs more with this log than with the one in memory, in runs of so many turns."""

    async def case(who: str, folder: Path) -> Samples:
        kept, numbers = make(folder / "log.db"), count()

        async def cpu(log: SessionLog) -> float:
            source = runner(Scripted(turns, ["done"], 0.0, None), turns, log)
            before = cpu_us()
            if await said_by(source, f"run-{next(numbers)}", None) != "done":
                raise RuntimeError("the run did not say what it was to say")
            return cpu_us() - before

        memory = InMemorySessionLog()
        samples: Samples = []
        for _ in range(2 + 2_000 // turns):
            gc.collect()
            samples.append((await cpu(kept) - await cpu(memory)) / (turns + 1))
        return samples[2:]

    return case


CASES = {
    "sqlite_append": append,
    "sqlite_100": turn_of(SqliteSessionLog, 100),
    "sqlite_1000": turn_of(SqliteSessionLog, 1_000),
    "file_100": turn_of(FileSessionLog, 100),
    "file_1000": turn_of(FileSessionLog, 1_000),
}


async def measure(who: str, case: str) -> Samples:
    """The samples of one case, in a folder that goes with it."""
    with tempfile.TemporaryDirectory(prefix="deepstrike-bench-") as folder:
        return await CASES[case](who, Path(folder))
