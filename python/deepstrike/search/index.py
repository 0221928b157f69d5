"""A full-text index in a SQLite file, for texts that are kept elsewhere in it.

The index keeps no text, so a text is taken out by giving it once more. `name` is one of our own, never a user's word.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.search.words import TOKENIZER, phrases, searchable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

RANKED: Final = 2_000
"""About so many texts are ranked for one question, a few thousandths of a millisecond each."""
SCANNED: Final = 6_000
"""More are never ranked."""
ENOUGH: Final = 30
"""So many texts with two words of a question are enough, where even its rarest word is in too many to rank them all."""
COUNTED: Final = 20_000
"""A word that is in more texts than this says nothing, if there are others."""


class Hit(NamedTuple):
    """The number of a text and how well it fits: above zero, larger is better, comparable within one question."""

    number: int
    score: float


def create(connection: sqlite3.Connection, name: str) -> None:
    """Make the index `name`, unless it is there."""
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5(title, body, content='', tokenize='{TOKENIZER}')"
    )


def put(connection: sqlite3.Connection, name: str, texts: Iterable[tuple[int, str, str]]) -> None:
    """Add texts, each with its number, a title that counts less, and its body."""
    connection.executemany(
        f"INSERT INTO {name}(rowid, title, body) VALUES (?, ?, ?)",  # noqa: S608
        ((number, searchable(title), searchable(body)) for number, title, body in texts),
    )


def take(connection: sqlite3.Connection, name: str, texts: Iterable[tuple[int, str, str]]) -> None:
    """Take texts out, given exactly as they were put in."""
    connection.executemany(
        f"INSERT INTO {name}({name}, rowid, title, body) VALUES ('delete', ?, ?, ?)",  # noqa: S608
        ((number, searchable(title), searchable(body)) for number, title, body in texts),
    )


def hits(connection: sqlite3.Connection, name: str, question: str, limit: int) -> list[Hit]:
    """The texts that fit best, by BM25, best first. Any question is safe; one without words finds nothing.

    Where its words are in very many texts, only those with one of the rarer words are ranked. Where even the rarest is
    in too many, those that have another one too; if there are not enough of these, at most `SCANNED`, the lowest
    numbers first.
    """
    found: list[Hit] = []
    for expression in _expressions(connection, name, phrases(question)):
        # In the order of numbers, in which the index is read, so that no text beyond the limit is ranked.
        query = f"SELECT rowid, -bm25({name}, 0.5, 1.0) FROM {name} WHERE {name} MATCH ? ORDER BY rowid LIMIT ?"  # noqa: S608
        rows = connection.execute(query, (expression, SCANNED))
        found = [Hit(*row) for row in nsmallest(limit, rows, key=lambda row: (-row[1], row[0]))]
        if len(found) >= min(limit, ENOUGH):
            break
    return found


def _expressions(connection: sqlite3.Connection, name: str, wanted: Sequence[str]) -> list[str]:
    """Any of the phrases, as far as that does not rank too many texts; what to try first, and what then.

    The rarest are looked for; the others only count where one of those is, and the commonest not at all. Counting the
    texts of a phrase costs a thirtieth of ranking them.
    """
    if len(wanted) < 2:
        return list(wanted)
    counted = sorted((_count(connection, name, phrase), phrase) for phrase in wanted)
    there = [(count, phrase) for count, phrase in counted if count] or counted
    telling = [phrase for at, (_, phrase) in enumerate(there) if sum(n for n, _ in there[: at + 1]) <= RANKED]
    crowded = not telling
    telling = telling or [there[0][1]]
    others = [phrase for count, phrase in there if count <= COUNTED and phrase not in telling]
    either = " OR ".join(telling)
    if not others:
        return [either]
    counting = f"({either}) AND ({' OR '.join([*telling, *others])})"
    return [f"({either}) AND ({' OR '.join(others)})", counting] if crowded else [counting]


def _count(connection: sqlite3.Connection, name: str, phrase: str) -> int:
    """In how many texts a phrase is, at most one more than `COUNTED`."""
    query = f"SELECT count(*) FROM (SELECT 1 FROM {name} WHERE {name} MATCH ? LIMIT ?)"  # noqa: S608
    [(count,)] = connection.execute(query, (phrase, COUNTED + 1)).fetchall()
    return int(count)


def purge(connection: sqlite3.Connection, name: str) -> None:
    """Write the index anew, so that no word of what was taken out is left in it."""
    connection.execute(f"INSERT INTO {name}({name}) VALUES ('optimize')")  # noqa: S608
