"""Sessions and their turns as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.memory import vector_rows
from deepstrike.memory.base import SessionData
from deepstrike.memory.messages import speaker_of, words_of
from deepstrike.memory.rows import TURNS, dumped, index_of
from deepstrike.search import index
from deepstrike.text import well_formed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence


def put_session(connection: sqlite3.Connection, agent: int, data: SessionData) -> None:
    """Keep a session in place of the one with its id; turns at its beginning that are the same stay."""
    session = _session_number(connection, agent, data)
    messages = [dumped(message) for message in data.messages]
    before = turns(connection, session)
    kept = _same(list(before.values()), messages)
    remove_turns(connection, agent, dict(list(before.items())[kept:]))
    first = session * TURNS
    added = {first + place: messages[place] for place in range(kept, len(messages))}
    connection.executemany("INSERT INTO turns VALUES (?, ?)", added.items())
    index.put(connection, index_of(agent), (_indexed(number, message) for number, message in added.items()))


def _same(before: Sequence[str], messages: Sequence[str]) -> int:
    """How many at the beginning are the same."""
    most = min(len(before), len(messages))
    return next((place for place in range(most) if before[place] != messages[place]), most)


def turns(connection: sqlite3.Connection, session: int) -> dict[int, str]:
    """The messages of a session by number, in order."""
    span = (session * TURNS, (session + 1) * TURNS)
    found = connection.execute(
        "SELECT number, message FROM turns WHERE number >= ? AND number < ? ORDER BY number", span
    )
    return dict(found.fetchall())


def remove_turns(connection: sqlite3.Connection, agent: int, messages: Mapping[int, str]) -> None:
    """Take turns out, with their words and vectors."""
    index.take(connection, index_of(agent), (_indexed(number, message) for number, message in messages.items()))
    connection.executemany("DELETE FROM turns WHERE number = ?", ((number,) for number in messages))
    vector_rows.remove(connection, agent, messages)


def sessions(connection: sqlite3.Connection, agent: int, agent_id: str) -> list[SessionData]:
    """All of an agent, the oldest first."""
    found = connection.execute(
        "SELECT number, id, metadata, created, updated FROM sessions WHERE agent = ? ORDER BY created, number", (agent,)
    )
    return [
        SessionData(
            session_id,
            agent_id,
            [json.loads(message) for message in turns(connection, number).values()],
            json.loads(metadata),
            created,
            updated,
        )
        for number, session_id, metadata, created, updated in found.fetchall()
    ]


def stands(connection: sqlite3.Connection, agent: int, data: SessionData) -> bool:
    """Whether a session is kept with just these messages and metadata."""
    found = connection.execute(
        "SELECT number, metadata FROM sessions WHERE agent = ? AND id = ?", (agent, well_formed(data.session_id))
    )
    return any(
        metadata == dumped(data.metadata)
        and list(turns(connection, number).values()) == [dumped(message) for message in data.messages]
        for number, metadata in found.fetchall()
    )


def remove_session(connection: sqlite3.Connection, agent: int, session_id: str) -> int:
    """Take a session out; how many turns it had."""
    found = connection.execute(
        "SELECT number FROM sessions WHERE agent = ? AND id = ?", (agent, well_formed(session_id))
    )
    removed = 0
    for (session,) in found.fetchall():
        messages = turns(connection, session)
        remove_turns(connection, agent, messages)
        connection.execute("DELETE FROM sessions WHERE number = ?", (session,))
        removed += len(messages)
    return removed


def _session_number(connection: sqlite3.Connection, agent: int, data: SessionData) -> int:
    [(number,)] = connection.execute(
        "INSERT INTO sessions (agent, id, metadata, created, updated) VALUES (?, ?, ?, ?, ?) ON CONFLICT (agent, id) "
        "DO UPDATE SET metadata = excluded.metadata, created = excluded.created, updated = excluded.updated "
        "RETURNING number",
        (agent, well_formed(data.session_id), dumped(data.metadata), data.created_at_ms, data.updated_at_ms),
    ).fetchall()
    return int(number)


def _indexed(number: int, message: str) -> tuple[int, str, str]:
    told = json.loads(message)
    return number, speaker_of(told), words_of(told)
