"""A dream store in one SQLite file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from deepstrike.memory import dream_rows, found_rows, memory_rows, rows, session_rows
from deepstrike.memory.base import DreamStore
from deepstrike.memory.checks import require_session
from deepstrike.memory.curation import committed, resolved
from deepstrike.memory.history import diffs
from deepstrike.memory.meanings import Meanings
from deepstrike.memory.neighbours import CANDIDATES, MEMORY_WEIGHT, around, asks, with_neighbours
from deepstrike.search import index
from deepstrike.search.database import Database
from deepstrike.search.ranks import fused
from deepstrike.tools.threads import run_in_thread
from deepstrike.write_ahead import transaction

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Sequence

    from deepstrike.memory.base import CurationResult, Dreamed, MemoryEntry, SessionData
    from deepstrike.memory.history import DreamDiff
    from deepstrike.search.embeddings import Embeddings


class SqliteDreamStore(DreamStore):
    """Keeps sessions and memories of any number of agents in the SQLite file `path`, which is made when it is needed.

    `search` ranks memories and turns by their words (FTS5, English words by their stems) and turns also by the turns
    around them; with `embeddings` also by meaning, both joined by rank. Superseded memories are kept and not found.
    Each agent has an index of its own, so nothing of another agent is found or weighs in a ranking.

    A commit is one transaction: a crash leaves the old or the new. Work is done in a thread; cancelling a call returns
    at once, and what had begun is finished. Safe to use from several threads, loops and processes. The file is readable
    by its user alone.

    Raises `ConfigError` where `path` is a folder or a SQLite file of another program, `DeepStrikeError` with code
    `store_busy` (another process has kept the file for 10 s; `retryable`), `store_damaged`, `store_unusable` (not a
    database, or of a newer release) or `store_io`.
    """

    def __init__(self, path: str | os.PathLike[str], *, embeddings: Embeddings | None = None) -> None:
        self._database = Database(path, rows.LAYOUT)
        self._meanings = Meanings(self._database, embeddings) if embeddings is not None else None

    async def load_sessions(self, agent_id: str) -> list[SessionData]:
        """All sessions of the agent, the oldest first."""
        return await run_in_thread(partial(self._load_sessions, agent_id))

    async def load_memories(self, agent_id: str) -> list[MemoryEntry]:
        """All memories of the agent, superseded ones too, in the order of `curate`."""
        return await run_in_thread(partial(self._load_memories, agent_id))

    async def commit(self, agent_id: str, result: CurationResult, existing: Sequence[MemoryEntry]) -> None:
        """Remove and add what the result says, and settle that with what others have committed meanwhile."""
        await run_in_thread(partial(self._commit, agent_id, result, existing))

    async def search(self, agent_id: str, query: str, top_k: int) -> list[MemoryEntry]:
        """The memories and turns of the agent that fit the query best, best first; see `MemoryEntry` for `metadata`.

        A turn comes with its own words, exactly as they were said. Scores compare within one search only.
        """
        return await run_in_thread(partial(self._search, agent_id, query, top_k))

    async def save_session(self, data: SessionData) -> None:
        """Keep a session in place of the agent's with the same id. Of one that only grew, only what is new is written.

        Raises `TypeError` for one of another form, also where a message or `metadata` holds what JSON does not.
        """
        require_session(data)
        await run_in_thread(partial(self._save_session, data))

    async def keep_dream(self, agent_id: str, dreamed: Dreamed) -> bool:
        """Commit what dreaming of a session came to and save the session with its mark, in one transaction.

        False, and nothing is changed, where the session is gone or no longer what was dreamed of.
        """
        return await run_in_thread(partial(self._keep_dream, agent_id, dreamed))

    async def agents(self) -> list[str]:
        """The ids of the agents that the file knows, sorted."""
        return await run_in_thread(self._agents)

    async def dreams(self, agent_id: str) -> list[DreamDiff]:
        """What each of the last 20 dreams that changed something has changed, the latest first."""
        return await run_in_thread(partial(self._dreams, agent_id))

    async def undo_dream(self, agent_id: str) -> DreamDiff | None:
        """Take back what the last dream changed, and say what that was; None where there is none to take back.

        The sessions stay marked, so the next dream does not bring it again. Called again, it takes back the one before.
        """
        return await run_in_thread(partial(self._undo_dream, agent_id))

    async def forget(self, session_id: str, *, agent_id: str | None = None) -> int:
        """Remove a session, of this agent or of every one, with all memories drawn from it; how many rows that were.

        No byte of it is left in the files when this returns, the index and the write-ahead log included; what it had
        superseded is so again. Raises `DeepStrikeError` (`store_busy`) where another process reads meanwhile: then the
        session is gone from the store, and calling again wipes the log.
        """
        return await run_in_thread(partial(self._forget, session_id, agent_id))

    def close(self) -> None:
        """Close the file; it opens again when it is needed."""
        self._database.close()

    def _load_sessions(self, agent_id: str) -> list[SessionData]:
        with self._database.work() as connection, transaction(connection, "DEFERRED"):
            agent = rows.agent_number(connection, agent_id)
            return [] if agent is None else session_rows.sessions(connection, agent, agent_id)

    def _load_memories(self, agent_id: str) -> list[MemoryEntry]:
        with self._database.work() as connection:
            agent = rows.agent_number(connection, agent_id)
            return [] if agent is None else memory_rows.memories(connection, agent)

    def _commit(self, agent_id: str, result: CurationResult, existing: Sequence[MemoryEntry]) -> None:
        with self._database.work() as connection, transaction(connection):
            agent = rows.known_agent(connection, agent_id)
            current = memory_rows.memories(connection, agent)
            memory_rows.put_memories(connection, agent, committed(current, result, existing))
        self._learn(agent)

    def _save_session(self, data: SessionData) -> None:
        with self._database.work() as connection, transaction(connection):
            agent = rows.known_agent(connection, data.agent_id)
            session_rows.put_session(connection, agent, data)
        self._learn(agent)

    def _keep_dream(self, agent_id: str, dreamed: Dreamed) -> bool:
        with self._database.work() as connection, transaction(connection):
            agent = rows.agent_number(connection, agent_id)
            if agent is None or not session_rows.stands(connection, agent, dreamed.before):
                return False
            before = memory_rows.memories(connection, agent)
            after = committed(before, dreamed.result, dreamed.existing)
            memory_rows.put_memories(connection, agent, after)
            session_rows.put_session(connection, agent, dreamed.after)
            dream_rows.put_change(connection, agent, (dreamed.dream, dreamed.at_ms), before, after)
        self._learn(agent)
        return True

    def _agents(self) -> list[str]:
        with self._database.work() as connection:
            return rows.agent_ids(connection)

    def _dreams(self, agent_id: str) -> list[DreamDiff]:
        with self._database.work() as connection, transaction(connection, "DEFERRED"):
            agent = rows.agent_number(connection, agent_id)
            return [] if agent is None else _diffs(connection, agent)

    def _undo_dream(self, agent_id: str) -> DreamDiff | None:
        with self._database.work() as connection, transaction(connection):
            agent = rows.agent_number(connection, agent_id)
            if agent is None or not (told := _diffs(connection, agent, 1)):
                return None
            change = dream_rows.change(connection, told[0].number)
            left = resolved(change.undone(memory_rows.memories(connection, agent)))
            memory_rows.put_memories(connection, agent, left)
            dream_rows.remove_dream(connection, told[0].number)
        self._learn(agent)
        return told[0]

    def _learn(self, agent: int) -> None:
        if self._meanings is not None:
            self._meanings.learn(agent)

    def _search(self, agent_id: str, query: str, top_k: int) -> list[MemoryEntry]:
        if top_k < 1:
            return []
        with self._database.work() as connection:
            agent = rows.agent_number(connection, agent_id)
            if agent is None:
                return []
            scored = _by_words(connection, agent, query, CANDIDATES)
        if self._meanings is not None:
            alike = self._meanings.alike(agent, query)
            scored = fused([number for number, _ in scored], alike)
        with self._database.work() as connection, transaction(connection, "DEFERRED"):
            return found_rows.found_entries(connection, scored, top_k)

    def _forget(self, session_id: str, agent_id: str | None) -> int:
        removed = 0
        with self._database.work() as connection:
            with transaction(connection):
                known = rows.agent_number(connection, agent_id) if agent_id is not None else None
                chosen = rows.agents(connection) if agent_id is None else [known] if known is not None else []
                for agent in chosen:
                    removed += _forget_of_agent(connection, agent, session_id)
            self._database.wipe()
        return removed


def _by_words(connection: sqlite3.Connection, agent: int, query: str, limit: int) -> list[tuple[int, float]]:
    """Turns and memories by number in the index, best first."""
    hits = index.hits(connection, rows.index_of(agent), query, limit)
    turns = {hit.number: hit.score for hit in hits if hit.number >= 0}
    asking = {number: asks(said) for number, said in found_rows.said(connection, turns).items()}
    scores = with_neighbours(turns, asking, found_rows.existing(connection, around(turns)))
    scores |= {hit.number: hit.score * MEMORY_WEIGHT for hit in hits if hit.number < 0}
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _diffs(connection: sqlite3.Connection, agent: int, most: int = dream_rows.KEPT) -> list[DreamDiff]:
    """What the last dreams have changed, the latest first."""
    dreams = dream_rows.dreams(connection, agent)[:most]
    changes = [(dream, dream_rows.change(connection, dream.number)) for dream in dreams]
    return list(diffs(memory_rows.memories(connection, agent), changes))


def _forget_of_agent(connection: sqlite3.Connection, agent: int, session_id: str) -> int:
    turns = session_rows.remove_session(connection, agent, session_id)
    dream_rows.forget_session(connection, agent, session_id)
    before = memory_rows.memories(connection, agent)
    left = [entry for entry in before if entry.metadata.get("session_id") != session_id]
    if len(left) < len(before):
        memory_rows.put_memories(connection, agent, resolved(left))
    if turns or len(left) < len(before):
        index.purge(connection, rows.index_of(agent))
    return turns + len(before) - len(left)
