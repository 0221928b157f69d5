"""A dream store in this process."""

from __future__ import annotations

import math
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final

from deepstrike.memory.base import DreamStore, MemoryEntry, SessionData
from deepstrike.memory.checks import require_session
from deepstrike.memory.curation import committed, is_current, resolved
from deepstrike.memory.messages import speaker_of, turn_entry, words_of
from deepstrike.memory.neighbours import CANDIDATES, MEMORY_WEIGHT, around, asks, with_neighbours
from deepstrike.search.words import searchable, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.memory.base import CurationResult, Dreamed

_SATURATION: Final = 1.2
_LENGTH: Final = 0.75


class InMemoryDreamStore(DreamStore):
    """Keeps sessions and memories in this process, for tests and short programs: a search looks at every text.

    It finds whole words only, where `SqliteDreamStore` finds English words by their stems too; all else is the same.
    Safe to use from several threads and loops.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: dict[str, dict[str, SessionData]] = {}
        self._memories: dict[str, list[MemoryEntry]] = {}

    async def load_sessions(self, agent_id: str) -> list[SessionData]:
        """All sessions of the agent, the oldest first."""
        with self._lock:
            return self._oldest_first(agent_id)

    async def load_memories(self, agent_id: str) -> list[MemoryEntry]:
        """All memories of the agent, superseded ones too, in the order of `curate`."""
        with self._lock:
            return list(self._memories.get(agent_id, ()))

    async def commit(self, agent_id: str, result: CurationResult, existing: Sequence[MemoryEntry]) -> None:
        """Remove and add what the result says, and settle that with what others have committed meanwhile."""
        with self._lock:
            self._memories[agent_id] = committed(self._memories.get(agent_id, ()), result, existing)

    async def search(self, agent_id: str, query: str, top_k: int) -> list[MemoryEntry]:
        """The memories and turns of the agent that fit the query best, best first."""
        with self._lock:
            sessions = self._oldest_first(agent_id)
            memories = [entry for entry in self._memories.get(agent_id, ()) if is_current(entry)]
        return _found(sessions, memories, query)[: max(top_k, 0)]

    async def save_session(self, data: SessionData) -> None:
        """Keep a session in place of the agent's with the same id. Raises `TypeError` for one of another form."""
        require_session(data)
        with self._lock:
            self._sessions.setdefault(data.agent_id, {})[data.session_id] = data

    async def keep_dream(self, agent_id: str, dreamed: Dreamed) -> bool:
        """Commit what dreaming of a session came to and save the session with its mark, in one step.

        False, and nothing is changed, where the session is gone or no longer what was dreamed of.
        """
        with self._lock:
            if self._sessions.get(agent_id, {}).get(dreamed.before.session_id) != dreamed.before:
                return False
            before = self._memories.get(agent_id, ())
            self._memories[agent_id] = committed(before, dreamed.result, dreamed.existing)
            self._sessions[agent_id][dreamed.after.session_id] = dreamed.after
            return True

    async def forget(self, session_id: str, *, agent_id: str | None = None) -> int:
        """Remove a session, of this agent or of every one, with all memories drawn from it; how many rows that were."""
        with self._lock:
            agents = {*self._sessions, *self._memories} if agent_id is None else {agent_id}
            return sum(self._forget(agent, session_id) for agent in agents)

    def _oldest_first(self, agent_id: str) -> list[SessionData]:
        return sorted(self._sessions.get(agent_id, {}).values(), key=lambda data: data.created_at_ms)

    def _forget(self, agent_id: str, session_id: str) -> int:
        data = self._sessions.get(agent_id, {}).pop(session_id, None)
        before = self._memories.get(agent_id, [])
        left = [entry for entry in before if entry.metadata.get("session_id") != session_id]
        if len(left) < len(before):
            self._memories[agent_id] = resolved(left)
        return (len(data.messages) if data is not None else 0) + len(before) - len(left)


def _found(sessions: Sequence[SessionData], memories: Sequence[MemoryEntry], query: str) -> list[MemoryEntry]:
    """Turns are numbered with a gap between sessions, so that none is the neighbour of another session's."""
    turns: dict[int, tuple[SessionData, int]] = {}
    for data in sessions:
        first = max(turns, default=-3) + 3
        turns.update({first + place: (data, place) for place in range(len(data.messages))})
    texts = {number: _text(data.messages[place]) for number, (data, place) in turns.items()}
    texts |= {-1 - place: entry.text for place, entry in enumerate(memories)}
    hits = dict(sorted(_scores(texts, query).items(), key=lambda pair: (-pair[1], pair[0]))[:CANDIDATES])
    own = {number: score for number, score in hits.items() if number >= 0}
    asking = {number: asks(texts[number]) for number in own}
    scores = with_neighbours(own, asking, [number for number in around(own) if number in turns])
    scores |= {number: score * MEMORY_WEIGHT for number, score in hits.items() if number < 0}
    found: list[MemoryEntry] = []
    for number, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])):
        if number < 0:
            entry = memories[-1 - number]
            found.append(MemoryEntry(entry.text, score, {"kind": "memory", **entry.metadata}))
        else:
            data, place = turns[number]
            found.append(turn_entry(data.messages[place], data.session_id, place, data.updated_at_ms, score))
    return [entry for entry in found if entry.text.strip()]


def _text(message: Mapping[str, object]) -> str:
    return f"{speaker_of(message)} {words_of(message)}"


def _scores(texts: Mapping[int, str], query: str) -> dict[int, float]:
    """BM25 of every text with a word of the query."""
    wanted = {word for term in terms(query) for word in searchable(term).split()}
    bags = {number: Counter(searchable(text).lower().translate(_BREAKS).split()) for number, text in texts.items()}
    average = sum(bag.total() for bag in bags.values()) / len(bags) if bags else 0.0
    scores: dict[int, float] = {}
    for word in wanted:
        having = [number for number, bag in bags.items() if word in bag]
        rarity = math.log(1 + (len(bags) - len(having) + 0.5) / (len(having) + 0.5))
        for number in having:
            often, length = bags[number][word], bags[number].total()
            weight = often * (_SATURATION + 1) / (often + _SATURATION * (1 - _LENGTH + _LENGTH * length / average))
            scores[number] = scores.get(number, 0.0) + rarity * weight
    return scores


_BREAKS: Final = {ord(character): " " for character in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~“”‘’…–—«»¿¡。、，！？"}
