"""A check of a session log, and what the checks are made with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from threading import Thread

from deepstrike.sessions.base import SessionLog

OpenLog = Callable[[], SessionLog]
"""Opens a log on a store, any number of times."""

MakeLog = Callable[[], Awaitable[SessionLog]]
"""Gives a new, empty log each time it is called."""

MakeStore = Callable[[], Awaitable[OpenLog]]
"""Makes a new, empty store each time it is called, and gives what opens a log on that store, any number of times."""

Checked = Callable[[SessionLog], Awaitable[None]]
Stored = Callable[[OpenLog], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LogCheck:
    """One promise of `SessionLog`; `name` says it."""

    name: str
    _body: Checked

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakeLog) -> None:
        """Run the check on a log from `make`. Raises `AssertionError` with what was found instead."""
        await self._body(await make())


@dataclass(frozen=True, slots=True)
class DurableCheck:
    """One promise of a log that outlives the object that wrote it; `name` says it."""

    name: str
    _body: Stored

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakeStore) -> None:
        """Run the check on a store from `make`. Raises `AssertionError` with what was found instead."""
        await self._body(await make())


async def write(log: SessionLog, session_id: str, *batches: Sequence[bytes]) -> None:
    """Append each batch at the end of the session and give the session back."""
    owner = await log.acquire(session_id)
    try:
        for batch in batches:
            await log.append(session_id, batch, await log.latest_seq(session_id) + 1, owner=owner)
    finally:
        await log.release(session_id, owner)


async def settled(work: Awaitable[None]) -> None:
    """`work` as a coroutine, which `asyncio.run` wants."""
    await work


def run_in_threads(jobs: Sequence[Awaitable[None]]) -> None:
    """Run each job in a thread with an event loop of its own; raises the first error."""
    errors: list[BaseException] = []

    def work(job: Awaitable[None]) -> None:
        try:
            asyncio.run(settled(job))
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
