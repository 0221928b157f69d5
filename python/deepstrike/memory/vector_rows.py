"""Vectors of turns and memories as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.memory.base import MemoryEntry
from deepstrike.memory.curation import is_current
from deepstrike.memory.rows import TURNS, marks, parts
from deepstrike.search.vectors import signs, unpacked

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping


def put(connection: sqlite3.Connection, agent: int, vectors: Mapping[int, bytes]) -> None:
    """Keep packed vectors of turns and memories, by number in the index, and their signs beside them."""
    connection.executemany(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", ((agent, number, data) for number, data in vectors.items())
    )
    connection.executemany(
        "INSERT OR REPLACE INTO signs VALUES (?, ?, ?)",
        ((agent, number, _as_bytes(signs(unpacked(data)))) for number, data in vectors.items()),
    )


def remove(connection: sqlite3.Connection, agent: int, numbers: Iterable[int]) -> None:
    """Take the vectors of these out, as far as there are any."""
    for number in numbers:
        connection.execute("DELETE FROM vectors WHERE agent = ? AND number = ?", (agent, number))
        connection.execute("DELETE FROM signs WHERE agent = ? AND number = ?", (agent, number))


def read(connection: sqlite3.Connection, agent: int, numbers: Iterable[int]) -> dict[int, bytes]:
    """The vectors of these, as far as there are any."""
    found: dict[int, bytes] = {}
    for part in parts(numbers):
        query = f"SELECT number, data FROM vectors WHERE agent = ? AND number IN ({marks(part)})"  # noqa: S608
        found.update(connection.execute(query, (agent, *part)).fetchall())
    return found


def all_signs(connection: sqlite3.Connection, agent: int) -> dict[int, int]:
    """The signs of every vector of an agent."""
    found = connection.execute("SELECT number, data FROM signs WHERE agent = ?", (agent,))
    return {number: int.from_bytes(data, "big") for number, data in found}


def missing(connection: sqlite3.Connection, agent: int) -> list[int]:
    """What can be found by its words and has no vector: kept before there were embeddings."""
    memories_there = connection.execute("SELECT -number, metadata FROM memories WHERE agent = ?", (agent,)).fetchall()
    turns_there = connection.execute(
        "SELECT turns.number FROM sessions, turns WHERE agent = ? AND turns.number >= sessions.number * ? "
        "AND turns.number < (sessions.number + 1) * ?",
        (agent, TURNS, TURNS),
    ).fetchall()
    there = [number for (number,) in turns_there]
    there += [number for number, text in memories_there if is_current(MemoryEntry("", None, json.loads(text)))]
    have = {number for (number,) in connection.execute("SELECT number FROM signs WHERE agent = ?", (agent,))}
    return [number for number in there if number not in have]


def _as_bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "big")
