"""How far a session has come, noted beside its log: so that acknowledged records that are lost at its end are missed.

A log that has lost its last records is a shorter log, and whole. A flipped byte in the write-ahead log of SQLite makes
one: SQLite takes what stands before it. So the end is noted in a file that is not part of the log: in a database after
each append, of a session in a file when it is given back. A mark is never ahead of its log while the machine runs. A
power cut may take what was not flushed and leave the mark, so one that was made before the last start binds only where
appends are flushed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from mmap import ALLOCATIONGRANULARITY, mmap
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID
from zlib import crc32

from deepstrike.sessions.blob import blob_shelf
from deepstrike.sessions.disk import BINARY, read_at, write_at

if TYPE_CHECKING:
    from pathlib import Path

_FACTS: Final = Struct("<4sB11x16s16s64sI")
_END: Final = Struct("<III")
_MAGIC: Final = b"mark"
_HINT: Final = 64
_CHECK: Final = 0x6D61_726B
_CHECKED: Final = _FACTS.size - 4
SIZE: Final = _FACTS.size + _END.size
DIGEST_AT: Final = 32
"""Where in a mark its session's digest stands."""
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_UNKNOWN: Final = bytes(16)


class Mark(NamedTuple):
    """A session held `next_seq` records, the last with the checksum `chain`, when this was noted in `path`.

    `binds`: it must still hold them. Otherwise a power cut may have taken some. `digest` is the session's, `hint` what
    its id begins with.
    """

    path: Path
    digest: bytes
    hint: str
    next_seq: int
    chain: int
    binds: bool

    @property
    def told(self) -> str:
        """Why a record that should be there is known to be lost."""
        return (
            f"it is lost, {self.path} notes {self.next_seq} acknowledged records (remove that file if you have put "
            "an older copy of the log in place)"
        )

    @property
    def told_other(self) -> str:
        """Why a record is known to be another than it was."""
        return f"it is not the one that was acknowledged and that {self.path} notes"


class Notes:
    """Where the session's owner notes how far it has come: `SIZE` bytes at offset `at` of a file that is mapped.

    `flushed`: what is noted has been flushed to the disk. Raises `OSError` where the place cannot be had; from then on
    noting costs a tenth of what a write does. A file that is removed is written to all the same.
    """

    __slots__ = ("_at", "_end_at", "_facts", "_flushed", "_map")

    def __init__(self, path: Path, at: int, session_id: str, end: tuple[int, int], *, flushed: bool) -> None:
        digest, hint = digest_of(session_id), session_id.encode("utf-8", "replace")[:_HINT]
        self._facts = _sealed(flushed, digest, hint)
        self._flushed = flushed
        start = at // ALLOCATIONGRANULARITY * ALLOCATIONGRANULARITY
        self._at = at - start
        self._end_at = self._at + _FACTS.size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | BINARY, 0o600)
        try:
            # Written first: a map of what the disk has no room for would end the process. And what stands in the log
            # now, others may not have flushed.
            write_at(descriptor, at, _sealed(False, digest, hint) + _end(*end))
            self._map = mmap(descriptor, self._at + SIZE, offset=start)
        finally:
            os.close(descriptor)

    def note(self, next_seq: int, chain: int) -> None:
        """Note the end of the log, when it has been written."""
        _put(self._map, self._end_at, next_seq, chain, next_seq ^ chain ^ _CHECK)
        if self._flushed:
            self._map[self._at : self._at + _FACTS.size] = self._facts
            self._flushed = False

    def close(self) -> bytes:
        """Close the file, and give what is noted."""
        noted = self._map[self._at : self._at + SIZE]
        self._map.close()
        return noted


_put = _END.pack_into


def _end(next_seq: int, chain: int) -> bytes:
    return _END.pack(next_seq, chain, next_seq ^ chain ^ _CHECK)


def _sealed(flushed: bool, digest: bytes, hint: bytes) -> bytes:
    facts = _FACTS.pack(_MAGIC, flushed, boot(), digest, hint, 0)[:_CHECKED]
    return facts + crc32(facts).to_bytes(4, "little")


def digest_of(session_id: str) -> bytes:
    """What a mark calls its session."""
    return bytes.fromhex(blob_shelf(session_id))


@cache
def boot() -> bytes:
    """What tells this start of the machine from others; zeros where the system does not say."""
    with suppress(OSError, ValueError), open(_BOOT, encoding="ascii") as file:
        return UUID(file.read().strip()).bytes
    return _UNKNOWN


def write_mark(path: Path, session_id: str, end: tuple[int, int], *, flushed: bool) -> None:
    """Note the end of a session in a file of its own. Raises `OSError`."""
    facts = _sealed(flushed, digest_of(session_id), session_id.encode("utf-8", "replace")[:_HINT])
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | BINARY, 0o600)
    try:
        write_at(descriptor, 0, facts + _end(*end))
    finally:
        os.close(descriptor)


def parse(data: bytes, path: Path) -> Mark | None:
    """The mark in `SIZE` bytes of `path`; None where there is none, or a damaged one: that proves nothing."""
    if len(data) != SIZE:
        return None
    magic, flushed, since, digest, hint, seal = _FACTS.unpack_from(data)
    next_seq, chain, check = _END.unpack_from(data, _FACTS.size)
    if magic != _MAGIC or crc32(data[:_CHECKED]) != seal or next_seq ^ chain ^ check != _CHECK:
        return None
    binds = next_seq > 0 and (bool(flushed) or since == boot() != _UNKNOWN)
    return Mark(path, digest, hint.rstrip(b"\0").decode("utf-8", "replace"), next_seq, chain, binds)


def contents(path: Path) -> bytes:
    """All bytes of a file of marks; none where there is no such file or it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | BINARY)
    except OSError:
        return b""
    try:
        return read_at(descriptor, 0, os.fstat(descriptor).st_size)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
