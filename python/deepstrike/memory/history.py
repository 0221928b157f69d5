"""What dreams have changed, for whoever looks at them or takes one back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.memory.claims import folded
from deepstrike.memory.curation import is_current, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deepstrike.memory.base import MemoryEntry
    from deepstrike.memory.dream_rows import Change, DreamRow


@dataclass(frozen=True, slots=True)
class DreamDiff:
    """What is so since a dream, and what no longer is. `number` names the dream, `at_ms` is when it began.

    What is no longer so comes as it stands since: with the end of its time, or as it was where it is kept no more.
    """

    number: int
    at_ms: int
    added: Sequence[MemoryEntry]
    removed: Sequence[MemoryEntry]


def diffs(entries: Sequence[MemoryEntry], changes: Iterable[tuple[DreamRow, Change]]) -> Iterator[DreamDiff]:
    """What each dream has changed, the latest first, given how the memories stand now."""
    after = list(entries)
    for dream, change in changes:
        before = resolved(change.undone(after))
        was, now = _current(before), _current(after)
        standing = {folded(entry.text): entry for entry in after}
        added = [entry for said, entry in now.items() if said not in was]
        removed = [standing.get(said, entry) for said, entry in was.items() if said not in now]
        yield DreamDiff(dream.number, dream.at_ms, added, removed)
        after = before


def _current(entries: Iterable[MemoryEntry]) -> dict[str, MemoryEntry]:
    return {folded(entry.text): entry for entry in entries if is_current(entry)}
