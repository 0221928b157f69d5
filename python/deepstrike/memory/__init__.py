"""What outlives a run: memories and the conversations they were drawn from; and a scratch pad for one's own code."""

from __future__ import annotations

from deepstrike.memory.base import (
    CurationResult,
    CurationStats,
    Dreamed,
    DreamStore,
    KeepsDreams,
    MemoryEntry,
    SessionData,
)
from deepstrike.memory.curation import curate, observed, retraction
from deepstrike.memory.history import DreamDiff
from deepstrike.memory.in_memory import InMemoryDreamStore
from deepstrike.memory.sqlite import SqliteDreamStore
from deepstrike.memory.working import WorkingMemory

__all__ = [
    "CurationResult",
    "CurationStats",
    "DreamDiff",
    "DreamStore",
    "Dreamed",
    "InMemoryDreamStore",
    "KeepsDreams",
    "MemoryEntry",
    "SessionData",
    "SqliteDreamStore",
    "WorkingMemory",
    "curate",
    "observed",
    "retraction",
]
