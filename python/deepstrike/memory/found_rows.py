"""What a search has found, read from its rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.memory.base import MemoryEntry
from deepstrike.memory.messages import turn_entry, words_of
from deepstrike.memory.rows import TURNS, marks, parts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable


def existing(connection: sqlite3.Connection, numbers: Iterable[int]) -> list[int]:
    """Those of these turns that there are."""
    found: list[int] = []
    for part in parts(numbers):
        query = f"SELECT number FROM turns WHERE number IN ({marks(part)})"  # noqa: S608
        found += [number for (number,) in connection.execute(query, part)]
    return found


def said(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, str]:
    """The words of those of these turns that there are."""
    found: dict[int, str] = {}
    for part in parts(numbers):
        query = f"SELECT number, message FROM turns WHERE number IN ({marks(part)})"  # noqa: S608
        found |= {number: words_of(json.loads(message)) for number, message in connection.execute(query, part)}
    return found


def found_entries(connection: sqlite3.Connection, scored: Iterable[tuple[int, float]], limit: int) -> list[MemoryEntry]:
    """The first `limit` turns and memories that are still there, by number in the index, with their scores.

    A turn without words is none.
    """
    found: list[MemoryEntry] = []
    for number, score in scored:
        if len(found) == limit:
            break
        entries = _found_turn(connection, number, score) if number >= 0 else _found_memory(connection, -number, score)
        found += [entry for entry in entries if entry.text.strip()]
    return found


def words(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, str]:
    """The texts of turns and memories by number in the index, as far as they are there."""
    found = {number: found_entries(connection, [(number, 0.0)], 1) for number in numbers}
    return {number: entry.text for number, entries in found.items() for entry in entries}


def _found_turn(connection: sqlite3.Connection, number: int, score: float) -> list[MemoryEntry]:
    found = connection.execute(
        "SELECT message, id, updated FROM turns, sessions WHERE turns.number = ? AND sessions.number = ?",
        (number, number // TURNS),
    )
    return [
        turn_entry(json.loads(message), session_id, number % TURNS, updated, score)
        for message, session_id, updated in found.fetchall()
    ]


def _found_memory(connection: sqlite3.Connection, number: int, score: float) -> list[MemoryEntry]:
    found = connection.execute("SELECT text, metadata FROM memories WHERE number = ?", (number,))
    return [MemoryEntry(text, score, {"kind": "memory", **json.loads(metadata)}) for text, metadata in found.fetchall()]
