"""What `memory list | show | diff | undo | forget` do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, TextIO

import click

from deepstrike.cli import exits
from deepstrike.cli.pursue import Loop
from deepstrike.cli.remembered import diff_lines, entry_lines, listed, name_of, plain_diff, plain_entry
from deepstrike.cli.safe import json_line, one_line
from deepstrike.errors import ConfigError, UnknownSession
from deepstrike.memory.curation import is_current
from deepstrike.memory.sqlite import SqliteDreamStore
from deepstrike.sessions.given_path import given_path
from deepstrike.sessions.places import home

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence
    from typing import TypeVar

    from deepstrike.memory.base import MemoryEntry, SessionData
    from deepstrike.memory.history import DreamDiff

    T = TypeVar("T")

_SHORTEST = 4
"""Characters of a name that tell an entry."""


class _Found(NamedTuple):
    """An entry, whose it is, and all of that agent's."""

    agent_id: str
    entry: MemoryEntry
    entries: list[MemoryEntry]
    sessions: list[SessionData]


def list_memories(path: str | None, agent_id: str | None, *, everything: bool, as_json: bool) -> int:
    """One line an entry, the newest first for each agent."""
    memories = _with_store(path, lambda store: _memories(store, agent_id)) or []
    shown = [(agent, entry) for agent, entries in memories for entry in entries if everything or is_current(entry)]
    if as_json:
        _write(json_line({"agent": agent, **plain_entry(entry)}) for agent, entry in shown)
        return 0
    several = len(memories) > 1
    _write(listed(entry, agent if several else "") for agent, entry in shown)
    if not shown and sys.stdout.isatty():
        sys.stdout.write("nothing is remembered yet: runner.dream(agent_id) draws memories from finished sessions\n")
    return 0


def show_memory(path: str | None, agent_id: str | None, name: str, *, as_json: bool) -> int:
    """One entry with its source and what it took the place of."""
    found = _with_store(path, lambda store: _named(store, agent_id, name))
    if found is None:
        raise UnknownSession(f"no entry is named {name!r}: `deepstrike memory list --all` shows their names")
    if as_json:
        _write([json_line({"agent": found.agent_id, **plain_entry(found.entry)})])
    else:
        _write(entry_lines(found.entry, found.entries, found.sessions))
    return 0


def show_diff(path: str | None, agent_id: str | None, *, everything: bool, as_json: bool) -> int:
    """What the last dream has changed, or each of the last ones, the latest first."""
    diffs = _with_store(path, lambda store: _diffs(store, agent_id)) or []
    shown = diffs if everything else diffs[:1]
    if as_json:
        _write(json_line(plain_diff(diff)) for diff in shown)
        return 0
    _write(line for diff in shown for line in diff_lines(diff))
    if not shown:
        sys.stderr.write("no dream has changed anything yet\n")
    return 0


def undo_dream(path: str | None, agent_id: str | None, *, as_json: bool) -> int:
    """Take back the last dream and show what was taken back; without one nothing is done."""
    undone = _with_store(path, lambda store: _undone(store, agent_id))
    if undone is None:
        sys.stderr.write("there is no dream to take back\n")
        return 0
    _write([json_line(plain_diff(undone))] if as_json else ["taken back:", *diff_lines(undone)])
    return 0


def forget_sessions(path: str | None, agent_id: str | None, session_ids: Sequence[str], *, yes: bool) -> int:
    """Remove sessions with all that was drawn from them; asks first unless `yes`."""
    stdin: TextIO | None = sys.stdin  # None where it is closed
    if not yes and (stdin is None or not stdin.isatty()):
        raise ConfigError("nobody can be asked here whether to forget: add --yes")
    named = ", ".join(one_line(session_id, 60) for session_id in session_ids)
    if not yes and not click.confirm(f"Forget {named} and all that was drawn from it?", err=True):
        return exits.FAILED
    unknown = _with_store(path, lambda store: _forgotten(store, agent_id, session_ids))
    if unknown is None or unknown:
        missing = ", ".join(map(repr, unknown or session_ids))
        raise UnknownSession(f"nothing is known of {missing} here: check the id, --agent and --store")
    return 0


def _with_store(path: str | None, work: Callable[[SqliteDreamStore], Coroutine[object, object, T]]) -> T | None:
    """Do `work` on the store at `path`; None where the default one, at None, was never made."""
    place = home() / "memories.db" if path is None else given_path("--store", path)
    if not place.exists():
        if path is None:
            return None
        raise UnknownSession(f"there is no store of memories at {path}: check --store")
    store = SqliteDreamStore(place)
    try:
        with Loop() as loop:
            return loop.run(work(store))
    finally:
        store.close()


async def _memories(store: SqliteDreamStore, agent_id: str | None) -> list[tuple[str, list[MemoryEntry]]]:
    agents = await _agents(store, agent_id)
    return [(agent, await store.load_memories(agent)) for agent in agents]


async def _named(store: SqliteDreamStore, agent_id: str | None, name: str) -> _Found | None:
    found = [
        _Found(agent, entry, entries, [])
        for agent, entries in await _memories(store, agent_id)
        for entry in entries
        if len(name) >= _SHORTEST and name_of(entry).startswith(name)
    ]
    if len(found) > 1:
        raise ConfigError(f"{len(found)} entries have names that begin with {name!r}: give more of it")
    return found[0]._replace(sessions=await store.load_sessions(found[0].agent_id)) if found else None


async def _diffs(store: SqliteDreamStore, agent_id: str | None) -> list[DreamDiff]:
    agent = await _one_agent(store, agent_id)
    return [] if agent is None else await store.dreams(agent)


async def _undone(store: SqliteDreamStore, agent_id: str | None) -> DreamDiff | None:
    agent = await _one_agent(store, agent_id)
    return None if agent is None else await store.undo_dream(agent)


async def _forgotten(store: SqliteDreamStore, agent_id: str | None, session_ids: Iterable[str]) -> list[str]:
    """Forget them; those that nothing was known of."""
    if agent_id is not None:
        await _agents(store, agent_id)
    return [session_id for session_id in session_ids if not await store.forget(session_id, agent_id=agent_id)]


async def _agents(store: SqliteDreamStore, agent_id: str | None) -> list[str]:
    """The one that is named, which must be there, or all."""
    agents = await store.agents()
    if agent_id is None:
        return agents
    if agent_id not in agents:
        raise UnknownSession(f"there is no agent {agent_id!r} in this store; it has {_names(agents)}")
    return [agent_id]


async def _one_agent(store: SqliteDreamStore, agent_id: str | None) -> str | None:
    agents = await _agents(store, agent_id)
    if len(agents) > 1:
        raise ConfigError(f"the store has several agents, so say which with --agent: {_names(agents)}")
    return agents[0] if agents else None


def _names(agents: Sequence[str]) -> str:
    return ", ".join(map(repr, agents[:20])) or "none"


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
