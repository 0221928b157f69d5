"""Which sessions a folder of session files holds, in the order of their first appends."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.sessions.disk import open_to_read, read_at, write_all
from deepstrike.sessions.frame import seed
from deepstrike.sessions.layout import VERSION, head_of, is_torn_head, read_stretch
from deepstrike.sessions.lock import locked
from deepstrike.sessions.names import file_stem
from deepstrike.sessions.refusals import failed

if TYPE_CHECKING:
    from pathlib import Path

    from deepstrike.sessions.layout import Head

_logger = logging.getLogger("deepstrike")

ENDING: Final = ".log"
_FIRST_LOOK: Final = 1 << 16
_NONE: Final = -1
# What says something about one file, not about the folder, the disk or this process.
_OF_THE_FILE: Final = {errno.EINVAL, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ELOOP, errno.EIO}


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A session that holds a record, intact or damaged."""

    order: int
    session_id: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of which it cannot be told whose session it holds: where it is, and why."""

    path: str
    reason: str


def list_sessions(folder: Path) -> list[str]:
    """The ids of all sessions that hold a record. A file that cannot be told is left out, with a warning."""
    entries = []
    for path in _paths(folder):
        found = _looked_at(path)
        if isinstance(found, Entry):
            entries.append(found)
        elif found is not None:
            _logger.warning("%s is not listed: %s", found.path, found.reason)
    return [entry.session_id for entry in sorted(entries)]


def list_unreadable(folder: Path) -> list[Unreadable]:
    """The files that `list_sessions` leaves out, in order of their names."""
    return [found for path in _paths(folder) if isinstance(found := _looked_at(path), Unreadable)]


def take_order(folder: Path) -> int:
    """The next place in the order. Raises `OSError`."""
    with locked(folder / "order") as descriptor:
        text = read_at(descriptor, 0, 16)
        order = int(text, 16) if len(text) == 8 and text.isalnum() else _behind_all(folder)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, b"%08x" % (order + 1))
        return order


def _behind_all(folder: Path) -> int:
    """Behind every session that is there: the counter is new, or was lost."""
    entries = [found for path in _paths(folder) if isinstance(found := _looked_at(path), Entry)]
    return max((entry.order for entry in entries), default=_NONE) + 1


def _paths(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob(f"*{ENDING}"))
    except OSError as error:
        raise failed("listing", folder, error) from error


def _looked_at(path: Path) -> Entry | Unreadable | None:
    """What the file says of itself; None where it holds no record (yet) or was removed meanwhile."""
    try:
        descriptor = open_to_read(path)
        try:
            size = os.fstat(descriptor).st_size
            data = read_at(descriptor, 0, _FIRST_LOOK)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _OF_THE_FILE:
            return Unreadable(str(path), error.strerror or str(error))
        raise failed("reading", path, error) from error
    return _told(path, data, size)


def _told(path: Path, data: bytes, size: int) -> Entry | Unreadable | None:
    head = head_of(data)
    if head is None:
        torn = size == len(data) and is_torn_head(data)
        return None if torn else Unreadable(str(path), "its head is damaged")
    if head.version != VERSION:
        return Unreadable(str(path), f"a later release wrote it, in layout {head.version}")
    if path.name != f"{file_stem(head.session_id)}{ENDING}":
        return Unreadable(str(path), f"it holds session {head.session_id!r} and has another name than its own")
    return Entry(head.order, head.session_id) if _holds_any(data, size, head) else None


def _holds_any(data: bytes, size: int, head: Head) -> bool:
    """Whether there is a whole batch or damage, by the first look at the file; a file far beyond that holds one.

    Damage counts: whoever reads the session must hear of it.
    """
    if size > len(data):
        return True
    start = data.index(b"\n") + 1
    stretch = read_stretch(data[start:], seed(head.session_id), start)
    return bool(stretch.records) or stretch.fault is not None
