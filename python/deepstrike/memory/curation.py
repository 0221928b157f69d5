"""What becomes of memories when insights are added: a pure function of what was ever observed.

Every entry and every insight is an *observation*. Those that say the same are one: the highest of them stays. An order
of all observations decides everything, from the highest down:

1. what a person retracted, before what was only observed: it stays known, so that it does not come back;
2. what the user or the agent said, before text from a tool or the web, which so never replaces it;
3. the later observation; in one session the later record; then the more confident one.

Of several observations about one thing (the same `key`, or the same subject by `claims.subject`) the highest is what is
so now; the others are kept with the time until which they were. Because an old session's time is old, reading it again
never brings a corrected fact back. Beyond the cap the lowest observations are dropped, whatever they are.

So the outcome depends on the set of observations alone, not on the order in which they came, and doing it again changes
nothing: each step keeps the highest of a set, and the highest of the highest are the highest.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Final

from deepstrike.memory.base import CurationResult, CurationStats, MemoryEntry
from deepstrike.memory.claims import folded, subject, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_ENTRIES: Final = 10_000
"""How many entries of an agent are kept, superseded and retracted ones included."""
_DERIVED: Final = ("valid_until_ms", "superseded_by")
_Rank = tuple[bool, bool, int, int, float, str]


def observed(
    text: str,
    *,
    session_id: str,
    record: int,
    at_ms: int,
    source: str,
    confidence: float = 1.0,
    trusted: bool = True,
    key: str | None = None,
) -> MemoryEntry:
    """An insight as `curate` takes it: `text`, drawn from `source`, the text of record or turn `record` of a session.

    `trusted` is False for what came from a tool or the web. `key` names what the text is the value of, if it is known.
    """
    metadata: dict[str, object] = {
        "session_id": session_id,
        "record": record,
        "hash": digest(source),
        "observed_at_ms": at_ms,
        "confidence": confidence,
    }
    if not trusted:
        metadata["trust"] = "untrusted"
    if key is not None:
        metadata["key"] = key
    return MemoryEntry(tidy(text), None, metadata)


def retraction(text: str, at_ms: int) -> MemoryEntry:
    """What a person says is not to be remembered: curated, it ends the text and keeps it from coming back."""
    return MemoryEntry(tidy(text), None, {"retracted": True, "observed_at_ms": at_ms})


def digest(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_current(entry: MemoryEntry) -> bool:
    """Whether an entry is so now: not superseded and not retracted."""
    return entry.metadata.get("valid_until_ms") is None and entry.metadata.get("retracted") is not True


def curate(
    existing: Sequence[MemoryEntry], insights: Iterable[MemoryEntry], *, cap: int = MAX_ENTRIES
) -> CurationResult:
    """What to change in `existing` so that it holds the insights too. Texts without a word are dropped.

    `to_add` and `to_remove_indices` are in a fixed order; a superseded entry is removed and added with the end of its
    time. `conflicts_resolved` counts entries newly superseded, `entries_added` texts that were not there before.
    """
    given = [_Observation.of(entry) for entry in insights]
    known = [_Observation.of(entry) for entry in existing]
    final = _annotated(_highest([*known, *given], cap))
    wanted = {_identity(entry): entry for entry in final}
    kept: set[str] = set()
    removed: list[int] = []
    for index, entry in enumerate(existing):
        identity = _identity(entry)
        if identity in wanted and identity not in kept:
            kept.add(identity)
        else:
            removed.append(index)
    added = [entry for entry in final if _identity(entry) not in kept]
    return CurationResult(added, removed, _stats(existing, given, added))


def resolved(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    """The entries as `curate` would leave them without a cap, in its order."""
    return _annotated(_highest([_Observation.of(entry) for entry in entries], None))


def committed(
    current: Sequence[MemoryEntry], result: CurationResult, existing: Sequence[MemoryEntry]
) -> list[MemoryEntry]:
    """What a store holds after a commit, also if others committed since `existing` was loaded."""
    gone = {_identity(existing[index]) for index in result.to_remove_indices}
    return resolved([*(entry for entry in current if _identity(entry) not in gone), *result.to_add])


@dataclass(frozen=True, slots=True)
class _Observation:
    entry: MemoryEntry
    text: str
    about: str
    keyed: bool
    rank: _Rank

    @classmethod
    def of(cls, entry: MemoryEntry) -> _Observation:
        metadata = {name: value for name, value in entry.metadata.items() if name not in _DERIVED}
        plain = MemoryEntry(tidy(entry.text), None, metadata)
        key = metadata.get("key")
        keyed = isinstance(key, str) and bool(key.strip())
        about = f"key {folded(key)}" if isinstance(key, str) and keyed else subject(plain.text)
        return cls(plain, folded(plain.text), about, keyed, _rank(plain.text, metadata))

    def ends(self, lower: _Observation) -> bool:
        """Whether this one, higher and about the same, leaves no room for the other. With a key one value is left."""
        return (self.keyed and lower.keyed) or self.rank[:4] > lower.rank[:4]


def _rank(text: str, metadata: Mapping[str, object]) -> _Rank:
    confidence = metadata.get("confidence", 1.0)
    sure = float(confidence) if isinstance(confidence, int | float) and math.isfinite(confidence) else 0.0
    return (
        metadata.get("retracted") is True,
        metadata.get("trust") != "untrusted",
        _whole(metadata.get("observed_at_ms")),
        _whole(metadata.get("record")),
        min(max(sure, 0.0), 1.0),
        _canonical(text, metadata),
    )


def _highest(observations: Iterable[_Observation], cap: int | None) -> list[_Observation]:
    """The highest of those that say the same, and of these the `cap` highest, highest first."""
    best: dict[tuple[str, str], _Observation] = {}
    for each in observations:
        if not each.text:
            continue
        # With a key, the same value of another key is another observation.
        identity = (each.about if each.keyed else "", each.text)
        if identity not in best or each.rank > best[identity].rank:
            best[identity] = each
    return sorted(best.values(), key=lambda each: each.rank, reverse=True)[:cap]


def _annotated(observations: list[_Observation]) -> list[MemoryEntry]:
    """The entries, those that are no longer so with the end of their time; highest first."""
    retracted = {each.text: each for each in observations if each.rank[0]}
    ends: dict[int, _Observation] = {}
    living = [each for each in observations if not each.rank[0]]
    for each in living:
        if each.text in retracted:
            ends[id(each)] = retracted[each.text]
    for _, group in groupby(sorted(living, key=lambda each: each.about), key=lambda each: each.about):
        chain = [each for each in group if id(each) not in ends]  # still highest first: the sort is stable
        for place, each in enumerate(chain):
            above = next((higher for higher in reversed(chain[:place]) if higher.ends(each)), None)
            if above is not None:
                ends[id(each)] = above
    return [_ended(each, ends.get(id(each))) for each in observations]


def _ended(each: _Observation, by: _Observation | None) -> MemoryEntry:
    if by is None:
        return each.entry
    until = max(each.rank[2], by.rank[2])
    end = {"valid_until_ms": until, "superseded_by": digest(by.entry.text)}
    return replace(each.entry, metadata={**each.entry.metadata, **end})


def _stats(
    existing: Sequence[MemoryEntry], given: Sequence[_Observation], added: Sequence[MemoryEntry]
) -> CurationStats:
    known = {folded(entry.text) for entry in existing}
    new = {folded(entry.text) for entry in added} - known
    before = {folded(entry.text) for entry in existing if is_current(entry)}
    ended = {folded(entry.text) for entry in added if not is_current(entry)}
    duplicates = len(given) - len(new & {each.text for each in given})
    return CurationStats(len(given), duplicates, len(before & ended), len(new))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _identity(entry: MemoryEntry) -> str:
    return _canonical(entry.text, entry.metadata)


def _canonical(text: str, metadata: Mapping[str, object]) -> str:
    return json.dumps([text, metadata], sort_keys=True, default=str)
