"""What going on costs: folding the records of a long session, and resuming it from a durable log."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from bench.subject import Scripted, runner, said_by
from deepstrike import InMemorySessionLog
from deepstrike.kernel import Kernel
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from deepstrike.sessions.base import SessionLog

Samples = list[float]
TURNS = 10_000


async def crashed_records() -> list[bytes]:
    """The records of a session of so many tool turns whose process died before the model's last answer."""
    log = InMemorySessionLog()
    await said_by(runner(Scripted(TURNS, ["done"], 0.0, None), TURNS, log), "long", None)
    return (await log.read("long"))[:-2]


async def fold(who: str, folder: Path) -> Samples:
    """Wall time that folding takes a record."""
    records = await crashed_records()
    samples: Samples = []
    for _ in range(6):
        gc.collect()
        before = time.perf_counter()
        kernel = Kernel.replay(records)
        samples.append((time.perf_counter() - before) / len(records) * 1e6)
        if kernel.next_seq != len(records):
            raise RuntimeError(f"{len(records)} records fold to {kernel.next_seq}")
    return samples[1:]


def resume_of(make: Callable[[Path], SessionLog]) -> Callable[[str, Path], Coroutine[None, None, Samples]]:
    """Wall time from `resume` of the crashed session to its end, by a runner and a log object that know nothing of it.

    The model says its last answer at once. The samples are seconds.
    """

    async def case(who: str, folder: Path) -> Samples:
        records = await crashed_records()
        samples: Samples = []
        for number in range(4):
            place = folder / f"{number}.db"
            filling = make(place)
            owner = await filling.acquire("long")
            await filling.append("long", records, 0, owner=owner)
            await filling.release("long", owner)
            source = runner(Scripted(TURNS, ["done"], 0.0, None), TURNS, make(place))
            gc.collect()
            before = time.perf_counter()
            result = await source.resume("long")
            samples.append(time.perf_counter() - before)
            if (result.status, result.iterations) != ("completed", TURNS + 1):
                raise RuntimeError(f"the session ended {result.status} after {result.iterations} turns")
        return samples[1:]

    return case


CASES = {
    "fold": fold,
    "resume_sqlite": resume_of(SqliteSessionLog),
    "resume_file": resume_of(FileSessionLog),
}
