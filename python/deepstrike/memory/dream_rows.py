"""What each dream has changed, as rows: the observations that came and those that went.

How the memories of an agent stand follows from its observations, so these are enough to show a dream and to take it
back, and whatever was drawn from a forgotten session can be taken out of them. They hold nothing that follows from
other entries.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.memory.base import MemoryEntry
from deepstrike.memory.curation import plain
from deepstrike.memory.memory_rows import entry_digest
from deepstrike.memory.rows import dumped
from deepstrike.text import well_formed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

KEPT: Final = 20
"""The changes of so many dreams of an agent are kept, the latest."""


class DreamRow(NamedTuple):
    """A dream that changed something: the number of its row, and when it began."""

    number: int
    at_ms: int


class Change(NamedTuple):
    """What a dream changed, as it was observed."""

    gained: list[MemoryEntry]
    lost: list[MemoryEntry]

    def undone(self, entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
        """The observations there were before, given those that there are."""
        gone = {entry_digest(entry) for entry in self.gained}
        return [*(seen for entry in entries if entry_digest(seen := plain(entry)) not in gone), *self.lost]


def put_change(
    connection: sqlite3.Connection,
    agent: int,
    dream: tuple[str, int],
    before: Sequence[MemoryEntry],
    after: Sequence[MemoryEntry],
) -> None:
    """Add to what a dream, given by its id and when it began, has changed; forget the changes of the oldest dreams."""
    had, has = _observations(before), _observations(after)
    changed = [(key, 1, entry) for key, entry in has.items() if key not in had]
    changed += [(key, 0, entry) for key, entry in had.items() if key not in has]
    if not changed:
        return
    number = _number(connection, agent, dream)
    for key, gained, entry in changed:
        # What came in an earlier session of the same dream and goes in this one was never there, and the other way.
        opposite = connection.execute(
            "DELETE FROM changes WHERE dream = ? AND digest = ? AND gained <> ?", (number, key, gained)
        )
        if not opposite.rowcount:
            row = (number, key, gained, well_formed(entry.text), dumped(entry.metadata))
            connection.execute("INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?, ?)", row)
    for old in dreams(connection, agent)[KEPT:]:
        remove_dream(connection, old.number)


def dreams(connection: sqlite3.Connection, agent: int) -> list[DreamRow]:
    """Those of an agent whose changes are kept, the latest first."""
    found = connection.execute("SELECT number, at FROM dreams WHERE agent = ? ORDER BY number DESC", (agent,))
    return [DreamRow(*row) for row in found.fetchall()]


def change(connection: sqlite3.Connection, dream: int) -> Change:
    """What a dream has changed."""
    found = connection.execute("SELECT gained, text, metadata FROM changes WHERE dream = ? ORDER BY digest", (dream,))
    told = Change([], [])
    for gained, text, metadata in found.fetchall():
        (told.gained if gained else told.lost).append(MemoryEntry(text, None, json.loads(metadata)))
    return told


def remove_dream(connection: sqlite3.Connection, dream: int) -> None:
    """Forget what a dream has changed."""
    connection.execute("DELETE FROM changes WHERE dream = ?", (dream,))
    connection.execute("DELETE FROM dreams WHERE number = ?", (dream,))


def forget_session(connection: sqlite3.Connection, agent: int, session_id: str) -> None:
    """Take out of all changes of an agent what was drawn from a session."""
    for dream in dreams(connection, agent):
        found = connection.execute("SELECT digest, metadata FROM changes WHERE dream = ?", (dream.number,)).fetchall()
        drawn = [key for key, metadata in found if json.loads(metadata).get("session_id") == session_id]
        connection.executemany(
            "DELETE FROM changes WHERE dream = ? AND digest = ?", ((dream.number, key) for key in drawn)
        )
        if drawn and len(drawn) == len(found):
            remove_dream(connection, dream.number)


def _observations(entries: Iterable[MemoryEntry]) -> dict[str, MemoryEntry]:
    return {entry_digest(seen): seen for seen in map(plain, entries)}


def _number(connection: sqlite3.Connection, agent: int, dream: tuple[str, int]) -> int:
    connection.execute("INSERT OR IGNORE INTO dreams (agent, id, at) VALUES (?, ?, ?)", (agent, *dream))
    [(number,)] = connection.execute(
        "SELECT number FROM dreams WHERE agent = ? AND id = ?", (agent, dream[0])
    ).fetchall()
    return int(number)
