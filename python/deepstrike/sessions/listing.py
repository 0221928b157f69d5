"""Which sessions a folder of session files holds, in the order of their first appends."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.sessions.disk import read_at, write_all
from deepstrike.sessions.frame import seed
from deepstrike.sessions.layout import VERSION, head_of, read_stretch
from deepstrike.sessions.lock import locked
from deepstrike.sessions.refusals import failed

if TYPE_CHECKING:
    from pathlib import Path

_logger = logging.getLogger("deepstrike")

ENDING: Final = ".log"
_FIRST_LOOK: Final = 1 << 16
_NONE: Final = -1


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A session that holds a record."""

    order: int
    session_id: str


def list_sessions(folder: Path) -> list[str]:
    """The ids of all sessions that hold a record. A file that cannot be told is left out, with a warning."""
    try:
        paths = sorted(folder.glob(f"*{ENDING}"))
        entries = [entry for path in paths if (entry := _entry(path)) is not None]
    except OSError as error:
        raise failed("listing", folder, error) from error
    return [entry.session_id for entry in sorted(entries)]


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
    entries = [entry for path in folder.glob(f"*{ENDING}") if (entry := _entry(path)) is not None]
    return max((entry.order for entry in entries), default=_NONE) + 1


def _entry(path: Path) -> Entry | None:
    """What the file says of itself; None where it holds no record (yet), was removed meanwhile, or cannot be told."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        data = read_at(descriptor, 0, _FIRST_LOOK)
        head = head_of(data)
        if head is not None and head.version == VERSION and _holds_record(data, size, head.session_id):
            return Entry(head.order, head.session_id)
    finally:
        os.close(descriptor)
    if size > len(data) or (data and head is None and b"\n" in data) or (head is not None and head.version > VERSION):
        _logger.warning("%s is not listed: its head is damaged or of a later release", path)
    return None


def _holds_record(data: bytes, size: int, session_id: str) -> bool:
    """Whether there is a whole batch, by the first look at the file; a file far beyond that holds one."""
    if size > len(data):
        return True
    start = data.index(b"\n") + 1
    return bool(read_stretch(data[start:], seed(session_id), start).records)
