"""What the dream tests share: sessions, a model that reads them by a rule, a store of one's own, a runner."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence

from deepstrike import RuntimeOptions, RuntimeRunner
from deepstrike.memory import CurationResult, DreamStore, MemoryEntry, SessionData
from deepstrike.providers.base import Finish, LLMProvider, ModelEvent, ModelRequest
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Text, UserBlock

Insights = list[dict[str, object]]


def session(session_id: str, *texts: str, at: int = 1, agent: str = "ann") -> SessionData:
    """A session in which the user says these texts, at this time."""
    messages = [{"role": "user", "content": text} for text in texts]
    return SessionData(session_id, agent, messages, {"goal": texts[0] if texts else ""}, at, at)


def form(*texts: str, confidence: float = 0.9) -> str:
    """An answer of the form that is asked for."""
    return json.dumps({"insights": [{"text": text, "confidence": confidence} for text in texts]})


def asked_text(request: ModelRequest) -> str:
    """What the model is shown of a session."""
    [turn] = request.turns
    assert isinstance(turn, UserBlock)
    [part] = turn.parts
    assert isinstance(part, Text)
    return part.text


def asked_turns(request: ModelRequest) -> list[dict[str, object]]:
    """The lines of the conversation, without a note before them."""
    return [json.loads(line) for line in asked_text(request).splitlines() if line.startswith("{")]


class Reader:
    """A model whose insights are what stands behind `fact:` in a session's turns; keeps its requests."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self.requests: list[ModelRequest] = []
        self._before = before

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Read the session."""
        self.requests.append(request)
        self._before()
        facts = [fact for turn in asked_turns(request) for fact in re.findall(r"fact: (.+)", str(turn.get("text")))]
        yield TextDelta(form(*facts))
        yield Finish("stop")


class OwnStore(DreamStore):
    """A store as the description shows one: five coroutines, lists, no care taken."""

    def __init__(self, sessions: Sequence[SessionData] = (), memories: Sequence[MemoryEntry] = ()) -> None:
        self.sessions = {data.session_id: data for data in sessions}
        self.memories = list(memories)
        self.calls: list[str] = []

    async def load_sessions(self, agent_id: str) -> list[SessionData]:
        """All of them."""
        return [data for data in self.sessions.values() if data.agent_id == agent_id]

    async def load_memories(self, agent_id: str) -> list[MemoryEntry]:
        """All of them."""
        return list(self.memories)

    async def commit(self, agent_id: str, result: CurationResult, existing: Sequence[MemoryEntry]) -> None:
        """Remove and add."""
        self.calls.append("commit")
        gone = [existing[at] for at in result.to_remove_indices]
        self.memories = [entry for entry in self.memories if entry not in gone] + list(result.to_add)

    async def search(self, agent_id: str, query: str, top_k: int) -> list[MemoryEntry]:
        """Nothing."""
        return []

    async def save_session(self, data: SessionData) -> None:
        """Keep it."""
        self.calls.append(f"save {data.session_id}")
        self.sessions[data.session_id] = data


def runner(provider: LLMProvider, store: DreamStore, timeout_ms: int | None = None) -> RuntimeRunner:
    """A runner that can dream."""
    options = RuntimeOptions(provider=provider, dream_store=store, agent_id="ann", timeout_ms=timeout_ms)
    return RuntimeRunner(options)


def texts(entries: Sequence[MemoryEntry]) -> list[str]:
    """What entries say, sorted."""
    return sorted(entry.text for entry in entries)
