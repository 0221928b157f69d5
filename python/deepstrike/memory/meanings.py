"""Memories and turns by meaning: vectors kept in the file, their signs in memory."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from deepstrike.memory import found_rows, vector_rows
from deepstrike.search.vectors import nearest, packed
from deepstrike.write_ahead import transaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.search.database import Database
    from deepstrike.search.embeddings import Embeddings

NEAREST: Final = 100
_BATCH: Final = 64


class Meanings:
    """The vectors of a store. Safe to use from several threads."""

    def __init__(self, database: Database, embeddings: Embeddings) -> None:
        self._database = database
        self._embeddings = embeddings
        self._lock = Lock()
        self._learned: set[int] = set()
        self._signs: dict[int, tuple[object, Mapping[int, int]]] = {}

    def learn(self, agent: int) -> None:
        """Make the vectors that are missing. The model is asked while nobody waits for the file."""
        with self._database.work() as connection:
            missing = vector_rows.missing(connection, agent)
        for at in range(0, len(missing), _BATCH):
            self._learn(agent, missing[at : at + _BATCH])
        self._learned.add(agent)

    def alike(self, agent: int, query: str) -> list[int]:
        """The turns and memories nearest in meaning, nearest first."""
        if not query.strip():
            return []
        if agent not in self._learned:  # what was kept before there were embeddings
            self.learn(agent)
        [asked] = self._embeddings.embed([query])
        known = self._known(agent)
        return nearest(asked, known, partial(self._vectors, agent))[:NEAREST]

    def _learn(self, agent: int, numbers: Sequence[int]) -> None:
        with self._database.work() as connection:
            texts = found_rows.words(connection, numbers)
        vectors = self._embeddings.embed(list(texts.values()))
        made = {number: packed(vector) for number, vector in zip(texts, vectors)}  # noqa: B905  (strict is 3.10's too)
        with self._database.work() as connection, transaction(connection):
            still = found_rows.words(connection, made)  # what was removed meanwhile must leave no vector
            kept = {number: data for number, data in made.items() if still.get(number) == texts[number]}
            vector_rows.put(connection, agent, kept)

    def _known(self, agent: int) -> Mapping[int, int]:
        """The signs of all vectors of the agent, read again only when the file has changed."""
        with self._lock, self._database.work() as connection:
            [(version,)] = connection.execute("PRAGMA data_version").fetchall()
            state = (id(connection), version, connection.total_changes)
            before, known = self._signs.get(agent, (None, {}))
            if before != state:
                known = vector_rows.all_signs(connection, agent)
                self._signs[agent] = (state, known)
            return known

    def _vectors(self, agent: int, numbers: Sequence[int]) -> Mapping[int, bytes]:
        with self._database.work() as connection:
            return vector_rows.read(connection, agent, numbers)
