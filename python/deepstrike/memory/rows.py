"""Sessions and memories in a SQLite file: how it is laid out, and what all its rows have in common.

For whoever has the connection; several statements need a transaction. A turn's number is its session's and its place in
one, so that neighbours are one apart. In the index of its agent a turn has its number and a memory the negative of its.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.search import index
from deepstrike.search.database import Layout
from deepstrike.text import well_formed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

TURNS: Final = 1 << 24
"""More turns than a session has."""
LAYOUT: Final = Layout(
    "memories",
    0x6473_6D65,  # "dsme"
    2,
    (
        "CREATE TABLE agents (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
        "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, agent INTEGER NOT NULL, id TEXT NOT NULL, "
        "metadata TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, UNIQUE (agent, id))",
        "CREATE TABLE turns (number INTEGER PRIMARY KEY, message TEXT NOT NULL)",
        "CREATE TABLE memories (number INTEGER PRIMARY KEY AUTOINCREMENT, agent INTEGER NOT NULL, "
        "digest TEXT NOT NULL, place INTEGER NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL, "
        "UNIQUE (agent, digest))",
        "CREATE TABLE dreams (number INTEGER PRIMARY KEY AUTOINCREMENT, agent INTEGER NOT NULL, id TEXT NOT NULL, "
        "at INTEGER NOT NULL, UNIQUE (agent, id))",
        "CREATE TABLE changes (dream INTEGER NOT NULL, digest TEXT NOT NULL, gained INTEGER NOT NULL, "
        "text TEXT NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (dream, digest)) WITHOUT ROWID",
        "CREATE TABLE vectors (agent INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, "
        "PRIMARY KEY (agent, number)) WITHOUT ROWID",
        "CREATE TABLE signs (agent INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, "
        "PRIMARY KEY (agent, number)) WITHOUT ROWID",
    ),
)
_MANY: Final = 500


def agent_number(connection: sqlite3.Connection, agent_id: str) -> int | None:
    """The number of an agent that is known."""
    found = connection.execute("SELECT number FROM agents WHERE id = ?", (well_formed(agent_id),)).fetchall()
    return int(found[0][0]) if found else None


def known_agent(connection: sqlite3.Connection, agent_id: str) -> int:
    """The number of an agent, made known with an index of its own where it is not."""
    number = agent_number(connection, agent_id)
    if number is not None:
        return number
    [(number,)] = connection.execute(
        "INSERT INTO agents (id) VALUES (?) RETURNING number", (well_formed(agent_id),)
    ).fetchall()
    index.create(connection, index_of(number))
    return int(number)


def agents(connection: sqlite3.Connection) -> list[int]:
    """All of them."""
    return [number for (number,) in connection.execute("SELECT number FROM agents ORDER BY number")]


def agent_ids(connection: sqlite3.Connection) -> list[str]:
    """Their ids, sorted."""
    return [name for (name,) in connection.execute("SELECT id FROM agents ORDER BY id")]


def index_of(agent: int) -> str:
    """The name of an agent's index: no agent's words weigh in another's ranking."""
    return f"words_{agent:d}"


def parts(numbers: Iterable[int]) -> list[list[int]]:
    """The numbers in lists of a length that one statement takes, in order."""
    ordered = sorted(numbers)
    return [ordered[at : at + _MANY] for at in range(0, len(ordered), _MANY)]


def marks(numbers: Sequence[int]) -> str:
    """A question mark for each."""
    return ",".join("?" * len(numbers))


def dumped(value: object) -> str:
    """As JSON text that SQLite takes, in the order given. Raises `TypeError` for what JSON does not hold."""
    plain = value if isinstance(value, list) else dict(value)  # type: ignore[call-overload]
    return well_formed(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
