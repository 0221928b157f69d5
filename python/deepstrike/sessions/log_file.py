"""One session's file, as anybody may read it."""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deepstrike.errors import CorruptLog
from deepstrike.sessions.disk import open_to_read, read_at
from deepstrike.sessions.frame import seed
from deepstrike.sessions.layout import (
    PREFIX_SIZE,
    VERSION,
    Stretch,
    checksum_at,
    head_line,
    head_of,
    read_stretch,
)
from deepstrike.sessions.mark import contents, parse
from deepstrike.sessions.refusals import damaged, failed, newer

if TYPE_CHECKING:
    from pathlib import Path

    from deepstrike.sessions.mark import Mark

_FIRST_LOOK: Final = 1 << 12
_LONG_HEAD: Final = 1 << 16
_LOOKS: Final = 4
"""How often a session is looked at that is deleted and begun anew meanwhile."""


@dataclass(slots=True)
class Known:
    """Where the frames of a file that was read before end: a saving, checked against the file before it is used.

    `ends` grows with the file. `identity` is its device and inode.
    """

    identity: tuple[int, int]
    ends: array[int] = field(default_factory=lambda: array("Q"))


@dataclass(frozen=True, slots=True)
class Reading:
    """A file from record `first` on. `size` is the whole file's, `start` where its frames begin."""

    identity: tuple[int, int]
    first: int
    start: int
    size: int
    stretch: Stretch

    @property
    def next_seq(self) -> int:
        """How many records the file holds."""
        return self.first + len(self.stretch.records)

    @property
    def end(self) -> int:
        """Where the last whole batch ends."""
        return self.size - self.stretch.torn


def read_file(path: Path, session_id: str, known: Known | None = None, from_seq: int = 0) -> Reading | None:
    """Read the records from `from_seq` on; without `known`, all of them. None where there is no file.

    Raises `CorruptLog` where the head is damaged or another session's, `SessionError` for a file of a later layout or
    one that cannot be read. Damage and a torn tail behind the head are in the reading.
    """
    try:
        descriptor = open_to_read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failed("opening", path, error) from error
    try:
        reading = None if known is None else _read_on(descriptor, session_id, known, from_seq)
        return _read_all(descriptor, path, session_id) if reading is None else reading
    except OSError as error:
        raise failed("reading", path, error) from error
    finally:
        os.close(descriptor)


def mark_path(path: Path) -> Path:
    """Where it is noted how far the session in the file at `path` has come."""
    return path.with_suffix(".mark")


def mark_of(path: Path) -> Mark | None:
    """What is noted of the session in the file at `path`; to be read before the file is."""
    noted = mark_path(path)
    return parse(contents(noted), noted)


def read_noted(
    path: Path, session_id: str, known: Known | None = None, from_seq: int = 0, *, strict: bool = False
) -> tuple[Reading | None, CorruptLog | None]:
    """`read_file`, and what is damaged in it or missing at its end, by what is noted of the session.

    `strict`: also what is missing because of a torn tail, which its next owner cuts off and reports.
    """
    for _ in range(_LOOKS):
        mark = mark_of(path)
        reading = read_file(path, session_id, known, from_seq)
        damage = None if reading is None else _damage_in(reading, path, session_id, mark, strict=strict)
        if damage is None or mark_of(path) == mark:
            break  # else it was deleted, and begun anew, between the two looks
    return reading, damage


def require_own(path: Path, session_id: str) -> None:
    """Raise `CorruptLog` or `SessionError` where the file is of a later layout, or says that it is another session's.

    A damaged head says nothing.
    """
    try:
        descriptor = open_to_read(path)
    except OSError:
        return
    try:
        data = read_at(descriptor, 0, max(len(head_line(session_id, 0)), _LONG_HEAD))
    except OSError as error:
        raise failed("reading", path, error) from error
    finally:
        os.close(descriptor)
    if head_of(data) is not None:
        check_head(path, session_id, data)


def _damage_in(reading: Reading, path: Path, session_id: str, mark: Mark | None, *, strict: bool) -> CorruptLog | None:
    fault, place = reading.stretch.fault, str(path)
    if fault is not None:
        return damaged(session_id, reading.first + fault.index, fault.reason, f"{place}, byte {fault.offset}")
    if mark is None or not mark.binds:
        return None
    if reading.next_seq < mark.next_seq and (strict or not reading.stretch.torn):
        return damaged(session_id, reading.next_seq, mark.told, place)
    if reading.next_seq == mark.next_seq and reading.stretch.chain != mark.chain:
        return damaged(session_id, mark.next_seq - 1, mark.told_other, place)
    return None


def _read_all(descriptor: int, path: Path, session_id: str) -> Reading:
    status = os.fstat(descriptor)
    identity = (status.st_dev, status.st_ino)
    data = read_at(descriptor, 0, status.st_size)
    start = len(head_line(session_id, 0))
    if _may_become(data, session_id):
        return Reading(identity, 0, 0, len(data), Stretch([], array("Q"), seed(session_id), len(data), None))
    check_head(path, session_id, data)
    return Reading(identity, 0, start, len(data), read_stretch(data[start:], seed(session_id), start))


def _read_on(descriptor: int, session_id: str, known: Known, from_seq: int) -> Reading | None:
    """From where `known` leads to; None where the file is not what it was, or does not fit there."""
    first = min(from_seq, len(known.ends))
    status = os.fstat(descriptor)
    if not first or known.identity != (status.st_dev, status.st_ino) or status.st_size < known.ends[first - 1]:
        return None
    at, start = known.ends[first - 1], len(head_line(session_id, 0))
    prefix = read_at(descriptor, known.ends[first - 2] if first > 1 else start, PREFIX_SIZE)
    stretch = read_stretch(read_at(descriptor, at, status.st_size - at), checksum_at(prefix), at)
    if stretch.fault is not None:
        return None
    return Reading(known.identity, first, start, status.st_size, stretch)


def _may_become(data: bytes, session_id: str) -> bool:
    """Whether `data` is how a head line begins that was never written to its end."""
    if not data[:_FIRST_LOOK].strip(b"\0") and not data.strip(b"\0"):
        return True
    line = head_line(session_id, 0)
    if len(data) >= len(line):
        return False
    order = line.index(b'"') - 9  # its eight digits and the CRC-32 at the end are not known
    front, back = data[:order], data[order + 8 : len(line) - 9]
    return line.startswith(front) and line[order + 8 :].startswith(back)


def check_head(path: Path, session_id: str, data: bytes) -> None:
    """Raise `CorruptLog` or `SessionError` where `data` does not begin with the head of this session."""
    head = head_of(data)
    if head is not None and head.version > VERSION:
        raise newer(path, head.version, VERSION)
    if head is None:
        raise CorruptLog(
            f"the head of {path}, the log of session {session_id!r}, is damaged; nothing was changed, "
            "restore the file or delete() the session to use its id again"
        )
    if head.session_id != session_id:
        raise CorruptLog(
            f"{path} should be the log of session {session_id!r} and says that it is that of {head.session_id!r}; "
            "nothing was changed, give the file its own name back"
        )
