"""Many writers at once, and writers that are cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from deepstrike.errors import SessionBusy, StaleWriter
from deepstrike.testing.log_conformance.checks import run_in_threads
from deepstrike.testing.trying import same

if TYPE_CHECKING:
    from deepstrike.sessions.base import SessionLog
    from deepstrike.testing.log_conformance.checks import Checked

_TRIES: Final = 200
_PAUSE_SECONDS: Final = 0.01


async def the_losers_of_a_race_get_stale_writer(log: SessionLog) -> None:
    owner = await log.acquire("s")
    results = await asyncio.gather(
        *(log.append("s", [f"{writer}".encode()] * 3, 0, owner=owner) for writer in range(8)), return_exceptions=True
    )
    same([result for result in results if isinstance(result, int)], [2], "one winner")
    same(sum(isinstance(result, StaleWriter) for result in results), 7, "losers")
    records = await log.read("s")
    same((len(records), len(set(records))), (3, 1), "the winner's batch alone")


async def threads_with_loops_of_their_own_never_mix_batches(log: SessionLog) -> None:
    owner = await log.acquire("s")

    async def write(name: int) -> None:
        turn = refused = 0
        while turn < 25:
            batch = [f"{name}.{turn}.{part}".encode() for part in range(3)]
            try:
                await log.append("s", batch, await log.latest_seq("s") + 1, owner=owner)
                turn += 1
            except StaleWriter:  # another batch came first, and there are 7 × 25 of others
                refused += 1
                same(refused <= 175, True, f"writer {name} is refused only when another batch was written")

    await asyncio.to_thread(run_in_threads, [write(name) for name in range(8)])
    records = await log.read("s")
    batches = [records[first : first + 3] for first in range(0, len(records), 3)]
    wanted = [[f"{name}.{turn}.{part}".encode() for part in range(3)] for name in range(8) for turn in range(25)]
    same(sorted(batches), sorted(wanted), "whole batches, each once")
    for name in range(8):
        mine = [batch for batch in batches if batch[0].startswith(b"%d." % name)]
        same(mine, [batch for batch in wanted if batch[0].startswith(b"%d." % name)], f"the order of writer {name}")


async def one_thread_of_many_becomes_the_owner(log: SessionLog) -> None:
    tokens: list[str] = []

    async def claim() -> None:
        try:
            tokens.append(await log.acquire("s"))
        except SessionBusy:
            return

    await asyncio.to_thread(run_in_threads, [claim() for _ in range(8)])
    same(len(tokens), 1, "owners")


async def a_cancelled_append_leaves_its_batch_whole_or_absent(log: SessionLog) -> None:
    owner = await log.acquire("s")
    written: list[bytes] = []
    for steps in range(12):
        batch = [b"%d.%d" % (steps, part) for part in range(5)]
        task = asyncio.ensure_future(log.append("s", batch, len(written), owner=owner))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        found = await log.read("s")
        same(found in (written, written + batch), True, f"whole or absent, cancelled after {steps} steps")
        written = found
    same(await log.append("s", [b"end"], len(written), owner=owner), len(written), "append after them")
    same(await log.read("s"), [*written, b"end"], "read at the end")


async def a_cancelled_acquire_leaves_the_session_free(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    await log.release("s", owner)
    for steps in range(12):
        task = asyncio.ensure_future(log.acquire("s"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            await log.release("s", task.result())
        await log.release("s", await _acquired_in_the_end(log, steps))


async def a_cancelled_release_leaves_the_session_free(log: SessionLog) -> None:
    for steps in range(1, 13):
        owner = await _acquired_in_the_end(log, steps)
        written = await log.read("s")
        batch = [b"%d" % steps * 300_000] * 3
        append = asyncio.ensure_future(log.append("s", batch, len(written), owner=owner))
        await asyncio.sleep(0)
        release = asyncio.ensure_future(log.release("s", owner))
        for _ in range(steps):
            await asyncio.sleep(0)
        release.cancel()
        await asyncio.wait({append, release})
        refused = append.exception()
        same(
            refused is None or isinstance(refused, StaleWriter), True, f"{refused!r} is no other error than StaleWriter"
        )
        same(await log.read("s"), written if refused else written + batch, "what was acknowledged")
        if not release.cancelled():
            await log.release("s", owner)
    await log.release("s", await _acquired_in_the_end(log, 13))


async def _acquired_in_the_end(log: SessionLog, steps: int) -> str:
    """A log may give back by itself, a moment later, what came to be held when nobody waited any more."""
    for _ in range(_TRIES):
        try:
            return await log.acquire("s")
        except SessionBusy:  # noqa: PERF203  (it is tried again)
            await asyncio.sleep(_PAUSE_SECONDS)
    raise AssertionError(f"the session stays busy when its owner is cancelled after {steps} steps")


CHECKS: tuple[Checked, ...] = (
    the_losers_of_a_race_get_stale_writer,
    threads_with_loops_of_their_own_never_mix_batches,
    one_thread_of_many_becomes_the_owner,
    a_cancelled_append_leaves_its_batch_whole_or_absent,
    a_cancelled_acquire_leaves_the_session_free,
    a_cancelled_release_leaves_the_session_free,
)
