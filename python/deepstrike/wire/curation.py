"""Memories to be curated, and what becomes of them.

Every struct here has a twin in `crates/kernel/src/wire/curation.rs`. A text and what else is known of it stay with the
host, which names them here by number.
"""

from __future__ import annotations

from deepstrike.wire.message import Wire


class Ended(Wire, frozen=True):
    """Until when something was so (milliseconds since the epoch), and the digest of what superseded it."""

    until_ms: int
    by: str


class Observation(Wire, frozen=True):
    """Something observed, as far as it matters to others.

    `said` is the same for texts that say the same, empty for one without a word; two with the same `about` cannot both
    be so, and with `keyed` one value is left of it. `whole` is all of it as one text, `digest` that of its text.
    `confidence` is in millionths. `ended` is how it stands in the store now; `rough` means that it does not stand there
    as it would be written.
    """

    said: str
    about: str
    whole: str
    digest: str
    keyed: bool = False
    retracted: bool = False
    untrusted: bool = False
    at_ms: int = 0
    record: int = 0
    confidence: int = 0
    ended: Ended | None = None
    rough: bool = False


class Curation(Wire, frozen=True):
    """What a store holds, what comes to it (numbered behind the known), and how many are kept at most."""

    known: tuple[Observation, ...] = ()
    given: tuple[Observation, ...] = ()
    cap: int | None = None


class Kept(Wire, frozen=True):
    """One that is kept, by its number; `fresh` where the store does not hold it like this yet."""

    number: int
    ended: Ended | None = None
    fresh: bool = False


class Curated(Wire, frozen=True):
    """What a store holds afterwards, the highest first, and the numbers of the known ones that go.

    One that stands otherwise from now on is removed and kept fresh. `added` counts texts that were not known,
    `duplicates` the given that brought no such text, `superseded` texts that were so until now and are no longer.
    """

    kept: tuple[Kept, ...]
    removed: tuple[int, ...]
    added: int
    duplicates: int
    superseded: int
