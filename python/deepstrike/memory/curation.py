"""What becomes of memories when insights are added: a pure function of what was ever observed, in the kernel.

Every entry and every insight is an *observation*. Those that say the same are one: the highest of them stays. An order
of all observations decides everything, from the highest down:

1. what a person retracted, before what was only observed: it stays known, so that it does not come back;
2. what the user or the agent said, before text from a tool or the web, which so never replaces it;
3. the later observation; in one session the later record; then the more confident one.

Of several observations about one thing (the same `key`, or the same subject by `claims.subject`) the highest is what is
so now; the others are kept with the time until which they were. Because an old session's time is old, reading it again
never brings a corrected fact back. Beyond the cap the lowest observations are dropped, whatever they are.

So the outcome depends on the set of observations alone, not on the order in which they came, and doing it again changes
nothing. Reading what a text says and is about is done here; what follows from it, in the kernel.
"""

from __future__ import annotations

import json
import math
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from deepstrike import kernel
from deepstrike.memory.base import CurationResult, CurationStats, MemoryEntry
from deepstrike.memory.claims import folded, subject, tidy
from deepstrike.text import well_formed
from deepstrike.wire.curation import Curation, Ended, Observation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepstrike.wire.curation import Kept

MAX_ENTRIES: Final = 10_000
"""How many entries of an agent are kept, superseded and retracted ones included."""
_DERIVED: Final = ("valid_until_ms", "superseded_by")
_MILLION: Final = 1_000_000
_LARGEST: Final = 2**63 - 1


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


def plain(entry: MemoryEntry) -> MemoryEntry:
    """An entry as it was observed: its text on one line, without what follows from other entries."""
    observed_only = {name: value for name, value in entry.metadata.items() if name not in _DERIVED}
    return MemoryEntry(tidy(entry.text), None, observed_only)


def curate(
    existing: Sequence[MemoryEntry], insights: Iterable[MemoryEntry], *, cap: int = MAX_ENTRIES
) -> CurationResult:
    """What to change in `existing` so that it holds the insights too. Texts without a word are dropped.

    `to_add` and `to_remove_indices` are in a fixed order; a superseded entry is removed and added with the end of its
    time. `conflicts_resolved` counts entries newly superseded, `entries_added` texts that were not there before.
    """
    given = list(insights)
    curated = kernel.curate(Curation(_observations(existing), _observations(given), max(cap, 0)))
    entries = [*existing, *given]
    added = [_as_kept(entries[kept.number], kept) for kept in curated.kept if kept.fresh]
    stats = CurationStats(len(given), curated.duplicates, curated.superseded, curated.added)
    return CurationResult(added, list(curated.removed), stats)


def resolved(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    """The entries as `curate` would leave them without a cap, in its order."""
    there = list(entries)
    curated = kernel.curate(Curation(given=_observations(there)))
    return [_as_kept(there[kept.number], kept) for kept in curated.kept]


def committed(
    current: Sequence[MemoryEntry], result: CurationResult, existing: Sequence[MemoryEntry]
) -> list[MemoryEntry]:
    """What a store holds after a commit, also if others committed since `existing` was loaded."""
    gone = {identity(existing[index]) for index in result.to_remove_indices}
    return resolved([*(entry for entry in current if identity(entry) not in gone), *result.to_add])


def identity(entry: MemoryEntry) -> str:
    """The same for entries with the same text and metadata, whatever their score."""
    return json.dumps([entry.text, entry.metadata], sort_keys=True, default=str)


def _observations(entries: Iterable[MemoryEntry]) -> tuple[Observation, ...]:
    return tuple(map(_observation, entries))


def _observation(entry: MemoryEntry) -> Observation:
    seen = plain(entry)
    key = seen.metadata.get("key")
    keyed = isinstance(key, str) and bool(key.strip())
    ended = _ended(entry.metadata)
    return Observation(
        said=well_formed(folded(seen.text)),
        about=well_formed(f"key {folded(key)}" if isinstance(key, str) and keyed else subject(seen.text)),
        whole=well_formed(identity(seen)),
        digest=digest(seen.text),
        keyed=keyed,
        retracted=seen.metadata.get("retracted") is True,
        untrusted=seen.metadata.get("trust") == "untrusted",
        at_ms=_whole(seen.metadata.get("observed_at_ms")),
        record=_whole(seen.metadata.get("record")),
        confidence=_millionths(seen.metadata.get("confidence", 1.0)),
        ended=ended,
        rough=entry.text != seen.text or dict(entry.metadata) != {**seen.metadata, **_end(ended)},
    )


def _as_kept(entry: MemoryEntry, kept: Kept) -> MemoryEntry:
    seen = plain(entry)
    return MemoryEntry(seen.text, None, {**seen.metadata, **_end(kept.ended)})


def _end(ended: Ended | None) -> dict[str, object]:
    return {} if ended is None else {"valid_until_ms": ended.until_ms, "superseded_by": ended.by}


def _ended(metadata: Mapping[str, object]) -> Ended | None:
    if metadata.get("valid_until_ms") is None:
        return None
    by = metadata.get("superseded_by")
    return Ended(_whole(metadata["valid_until_ms"]), well_formed(by) if isinstance(by, str) else "")


def _whole(value: object) -> int:
    return min(max(value, -_LARGEST), _LARGEST) if isinstance(value, int) else 0


def _millionths(confidence: object) -> int:
    if not isinstance(confidence, int | float) or (isinstance(confidence, float) and math.isnan(confidence)):
        return 0
    return round(min(max(confidence, 0), 1) * _MILLION)
