"""What is remembered, and what a store of it has to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """Something remembered. `metadata` holds JSON values; `score` is set by `search` only, larger is better.

    What the stores and `curate` understand in `metadata`:

    * `session_id`, `record`, `hash`: where it comes from: the session, the record or turn in it, the digest of its text
    * `observed_at_ms`, `confidence`: when it was said, in milliseconds since 1970, and how sure it is, from 0 to 1
    * `key`: what it is the value of; a later entry with the same key supersedes it
    * `trust`: `"untrusted"` for text that came from a tool or the web
    * `retracted`: true where a person has said that the text is not to be remembered
    * `valid_until_ms`, `superseded_by`: set by `curate` on what is no longer so: until when, the digest of what is now
    * `kind`, `role`, `name`: set by `search`: `memory` or `turn`, and who said it
    """

    text: str
    score: float | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionData:
    """A finished conversation.

    A message is a mapping with `role` and `content` (a text, or parts with `text`), and `name` and `at_ms`, when it was
    said, if you like; it holds JSON values only. A run's messages may have `outside`: a list of words that the agent
    had read before them and that are no turn. Times are milliseconds since 1970.
    """

    session_id: str
    agent_id: str
    messages: Sequence[Mapping[str, object]]
    metadata: Mapping[str, object] = field(default_factory=dict)
    created_at_ms: int = 0
    updated_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class CurationStats:
    """What a curation came to: how many insights it saw, dropped as known, let supersede an entry, and added."""

    insights_processed: int = 0
    duplicates_removed: int = 0
    conflicts_resolved: int = 0
    entries_added: int = 0


@dataclass(frozen=True, slots=True)
class CurationResult:
    """What to change: entries to add, and which of the existing ones to remove. Superseded ones are in both."""

    to_add: Sequence[MemoryEntry]
    to_remove_indices: Sequence[int]
    stats: CurationStats = field(default_factory=CurationStats)


class DreamStore(ABC):
    """Where agents' sessions and memories are kept. What belongs to one `agent_id` is never seen by another."""

    @abstractmethod
    async def load_sessions(self, agent_id: str) -> list[SessionData]:
        """All sessions of the agent, the oldest first."""

    @abstractmethod
    async def load_memories(self, agent_id: str) -> list[MemoryEntry]:
        """All memories of the agent, superseded ones too, in an order that does not change by itself."""

    @abstractmethod
    async def commit(self, agent_id: str, result: CurationResult, existing: Sequence[MemoryEntry]) -> None:
        """Remove `existing[i]` for each index of the result and add its entries: all of it or nothing.

        `existing` is what `load_memories` gave and `result` was made from. Doing it twice is the same as once.
        """

    @abstractmethod
    async def search(self, agent_id: str, query: str, top_k: int) -> list[MemoryEntry]:
        """The at most `top_k` memories and turns of the agent that fit the query best, best first, with scores."""

    @abstractmethod
    async def save_session(self, data: SessionData) -> None:
        """Keep a session; one with the same id of the same agent is replaced."""


@dataclass(frozen=True, slots=True)
class Dreamed:
    """What dreaming of one session has come to.

    `dream` is the same for all sessions of one dream, which began at `at_ms`. `before` is the session as it was read,
    `after` the same with its mark; `result` was made from `existing`.
    """

    dream: str
    at_ms: int
    before: SessionData
    after: SessionData
    result: CurationResult
    existing: Sequence[MemoryEntry]


@runtime_checkable
class KeepsDreams(Protocol):
    """A store that commits and marks the session in one step, so that no process can come between."""

    async def keep_dream(self, agent_id: str, dreamed: Dreamed) -> bool:
        """`commit` and `save_session` in one: all of it or nothing. Whether it was kept.

        It is not where the session is gone, or no longer what it was before: forgotten, longer, dreamed of elsewhere.
        """
