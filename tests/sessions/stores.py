"""The durable logs, each on a store of its own, for the tests that hold for both."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from deepstrike.sessions.durability import Durability
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

FULL = os.environ.get("DEEPSTRIKE_FULL") == "1"
Durable = FileSessionLog | SqliteSessionLog
_numbers = count()


@dataclass(frozen=True)
class Kind:
    """One kind of durable log at one durability."""

    name: str
    open: Callable[[Path], Durable]

    def __str__(self) -> str:
        return self.name

    def at(self, folder: Path) -> Callable[[], Durable]:
        """What opens a log on a new store in `folder`, any number of times."""
        place = folder / f"{self.name}-{next(_numbers)}.db"
        return lambda: self.open(place)

    def stores_in(self, folder: Path) -> Callable[[], Awaitable[Callable[[], Durable]]]:
        """A new store each time, as the conformance suite wants it."""

        async def make() -> Callable[[], Durable]:
            return self.at(folder)

        return make


def _files(durability: Durability) -> Kind:
    return Kind(f"file-{durability}", lambda place: FileSessionLog(place, durability=durability))


def _sqlite(durability: Durability) -> Kind:
    return Kind(f"sqlite-{durability}", lambda place: SqliteSessionLog(place, durability=durability))


KINDS = [_files("os"), _files("disk"), _sqlite("os"), _sqlite("disk")]
FILES, SQLITE = KINDS[0], KINDS[2]


async def write(log: Durable, session_id: str, *batches: Sequence[bytes]) -> None:
    """Append each batch at the end of the session and give the session back."""
    owner = await log.acquire(session_id)
    for batch in batches:
        await log.append(session_id, batch, await log.latest_seq(session_id) + 1, owner=owner)
    await log.release(session_id, owner)


def seeded() -> tuple[int, random.Random]:
    """The seed of this run, to be named when a test fails, and its dice."""
    seed = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
    return seed, random.Random(seed)
