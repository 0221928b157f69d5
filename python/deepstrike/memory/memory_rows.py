"""Memories as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.memory import vector_rows
from deepstrike.memory.base import MemoryEntry
from deepstrike.memory.curation import digest, is_current
from deepstrike.memory.rows import dumped, index_of
from deepstrike.search import index
from deepstrike.text import well_formed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


def memories(connection: sqlite3.Connection, agent: int) -> list[MemoryEntry]:
    """All of an agent, as `curate` orders them."""
    found = connection.execute("SELECT text, metadata FROM memories WHERE agent = ? ORDER BY place, number", (agent,))
    return [MemoryEntry(text, None, json.loads(metadata)) for text, metadata in found]


def put_memories(connection: sqlite3.Connection, agent: int, entries: Sequence[MemoryEntry]) -> None:
    """Make these the memories of the agent; those that are the same stay."""
    wanted = {entry_digest(entry): (place, entry) for place, entry in enumerate(entries)}
    query = "SELECT digest, number, text, metadata FROM memories WHERE agent = ?"
    known = {key: (number, text, told) for key, number, text, told in connection.execute(query, (agent,))}
    gone = [row for key, row in known.items() if key not in wanted]
    _remove(connection, agent, [(number, MemoryEntry(text, None, json.loads(told))) for number, text, told in gone])
    connection.executemany(
        "UPDATE memories SET place = ? WHERE agent = ? AND digest = ? AND place <> ?",
        ((place, agent, key, place) for key, (place, _) in wanted.items() if key in known),
    )
    added = {
        _added(connection, agent, key, place, entry): entry
        for key, (place, entry) in wanted.items()
        if key not in known
    }
    findable = ((-number, "", entry.text) for number, entry in added.items() if is_current(entry))
    index.put(connection, index_of(agent), findable)


def _added(connection: sqlite3.Connection, agent: int, key: str, place: int, entry: MemoryEntry) -> int:
    """The number of a new row."""
    [(number,)] = connection.execute(
        "INSERT INTO memories (agent, digest, place, text, metadata) VALUES (?, ?, ?, ?, ?) RETURNING number",
        (agent, key, place, well_formed(entry.text), dumped(entry.metadata)),
    ).fetchall()
    return int(number)


def _remove(connection: sqlite3.Connection, agent: int, gone: Sequence[tuple[int, MemoryEntry]]) -> None:
    indexed = ((-number, "", entry.text) for number, entry in gone if is_current(entry))
    index.take(connection, index_of(agent), indexed)
    connection.executemany("DELETE FROM memories WHERE number = ?", ((number,) for number, _ in gone))
    vector_rows.remove(connection, agent, [-number for number, _ in gone])


def entry_digest(entry: MemoryEntry) -> str:
    """What tells an entry from every other of its agent."""
    return digest(dumped([entry.text, dict(sorted(entry.metadata.items()))]))
