"""Memories and what dreams changed, as lines for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.cli.safe import one_line
from deepstrike.memory.curation import digest, is_current, plain
from deepstrike.memory.memory_rows import entry_digest
from deepstrike.memory.messages import words_of
from deepstrike.memory.shown import UNTRUSTED, day_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.memory.base import MemoryEntry, SessionData
    from deepstrike.memory.history import DreamDiff

_NAME = 8
_LONG = 500


def name_of(entry: MemoryEntry) -> str:
    """What names an entry, whether it still is so or not."""
    return entry_digest(plain(entry))


def listed(entry: MemoryEntry, agent_id: str) -> str:
    """An entry on one line."""
    agent = f"{one_line(agent_id, 30)}  " if agent_id else ""
    return f"{agent}{name_of(entry)[:_NAME]}  {_since(entry)}  {_text(entry)}{_standing(entry)}{_from(entry)}"


def entry_lines(entry: MemoryEntry, entries: Sequence[MemoryEntry], sessions: Sequence[SessionData]) -> Iterator[str]:
    """An entry with its source, as far as that is still there, and what it took the place of."""
    yield f"{name_of(entry)[:_NAME]}  {_text(entry)}{_standing(entry)}"
    metadata = entry.metadata
    yield f"  since       {_since(entry)}"
    for name in ("key", "confidence"):
        if name in metadata:
            yield f"  {name:<10}  {one_line(str(metadata[name]), 80)}"
    if metadata.get("trust") == "untrusted":
        yield f"  untrusted   {UNTRUSTED}"
    if metadata.get("session_id") is not None:
        yield f"  from        session {one_line(str(metadata['session_id']), 80)}, turn {metadata.get('record')}"
    if said := _source(entry, sessions):
        yield f"  where       {one_line(said, _LONG)}"
    mine = digest(entry.text)
    for other in entries:
        if other.metadata.get("superseded_by") == mine:
            yield f"  instead of  {_text(other)}{_standing(other)}"


def diff_lines(diff: DreamDiff) -> Iterator[str]:
    """What a dream changed."""
    yield f"dream {diff.number} · {day_of(diff.at_ms)}"
    yield from (f"+ {_text(entry)}{_from(entry)}" for entry in diff.added)
    yield from (f"- {_text(entry)}{_standing(entry)}" for entry in diff.removed)


def plain_entry(entry: MemoryEntry) -> dict[str, object]:
    """An entry as JSON values."""
    return {
        "entry": name_of(entry)[:_NAME],
        "text": entry.text,
        "current": is_current(entry),
        "metadata": dict(entry.metadata),
    }


def plain_diff(diff: DreamDiff) -> dict[str, object]:
    """What a dream changed, as JSON values."""
    return {
        "dream": diff.number,
        "at_ms": diff.at_ms,
        "added": list(map(plain_entry, diff.added)),
        "removed": list(map(plain_entry, diff.removed)),
    }


def _text(entry: MemoryEntry) -> str:
    return one_line(entry.text, _LONG)


def _since(entry: MemoryEntry) -> str:
    at = entry.metadata.get("observed_at_ms")
    return day_of(at) if isinstance(at, int) and at > 0 else "-" * 10


def _standing(entry: MemoryEntry) -> str:
    if entry.metadata.get("retracted") is True:
        return " (retracted)"
    until = entry.metadata.get("valid_until_ms")
    return f" (until {day_of(until)})" if isinstance(until, int) else ""


def _from(entry: MemoryEntry) -> str:
    session = entry.metadata.get("session_id")
    source = "" if session is None else f"session {one_line(str(session), 40)}"
    trust = "untrusted" if entry.metadata.get("trust") == "untrusted" else ""
    told = ", ".join(part for part in (source, trust) if part)
    return f"  [{told}]" if told else ""


def _source(entry: MemoryEntry, sessions: Sequence[SessionData]) -> str:
    """The words of the turn that the entry was drawn from, if they are still the same."""
    record = entry.metadata.get("record")
    for data in sessions:
        if data.session_id == entry.metadata.get("session_id") and isinstance(record, int):
            said = words_of(data.messages[record]) if 0 <= record < len(data.messages) else ""
            return said if digest(said) == entry.metadata.get("hash") else ""
    return ""
