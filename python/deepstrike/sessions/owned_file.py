"""One session's file in the hands of its owner: cut where a write was never finished, then appended to."""

from __future__ import annotations

import logging
import os
from itertools import count
from typing import TYPE_CHECKING

from deepstrike.errors import SessionError
from deepstrike.sessions.disk import BINARY, flush, flush_folder, remove, write_all
from deepstrike.sessions.frame import seed
from deepstrike.sessions.layout import head_line, pack_batch
from deepstrike.sessions.log_file import Known, mark_of, mark_path, read_noted
from deepstrike.sessions.mark import write_mark
from deepstrike.sessions.refusals import failed, moved_on, other_seq, removed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from deepstrike.sessions.log_file import Reading

_logger = logging.getLogger("deepstrike")


class OwnedFile:
    """Open from `open` to `close`, by whoever holds the session's lock. Not for two threads at once.

    `flushed`: every append is on the disk before it returns, not just with the operating system. `take_order` gives
    the session's place in the order of first appends, when it makes its first.
    """

    __slots__ = (
        "_broken",
        "_chain",
        "_descriptor",
        "_end",
        "_flushed",
        "_noted",
        "_path",
        "_take_order",
        "known",
        "session_id",
    )

    def __init__(
        self, path: Path, session_id: str, flushed: bool, take_order: Callable[[], int], reading: Reading | None
    ) -> None:
        self.session_id = session_id
        self.known = Known((0, 0))
        self._path = path
        self._flushed = flushed
        self._take_order = take_order
        self._descriptor = -1
        self._noted = 0
        self._chain = seed(session_id)
        self._end = 0
        self._broken = False
        if reading is not None:
            self._go_on(reading)

    @classmethod
    def open(
        cls, path: Path, session_id: str, known: Known | None, *, flushed: bool, take_order: Callable[[], int]
    ) -> OwnedFile:
        """Read the file, as far as it is not `known`, and cut off a torn tail, which is kept beside it.

        Raises `CorruptLog` or another `SessionError`; then nothing was changed.
        """
        reading, damage = read_noted(path, session_id, known, 0 if known is None else len(known.ends))
        if damage is not None:
            raise damage
        if reading is not None:
            _take_leave_of_the_missing(path, session_id, reading, flushed)
            if reading.stretch.torn:
                _set_tail_aside(path, session_id, reading, flushed)
        file = cls(path, session_id, flushed, take_order, reading)
        if known is not None and reading is not None and reading.first:
            file.known.ends = known.ends[: reading.first] + reading.stretch.ends
        return file

    @property
    def next_seq(self) -> int:
        """The seq that the next record gets."""
        return len(self.known.ends)

    def append(self, records: Sequence[bytes], expected_seq: int) -> int:
        """See `SessionLog.append`. A write that fails is taken back, so later appends may work."""
        if self._broken:
            raise SessionError(
                f"an earlier append to session {self.session_id!r} failed and could not be taken back, so nothing more "
                "is written; release() and acquire() the session again",
                code="log_io",
            )
        if expected_seq != self.next_seq:
            raise other_seq(self.session_id, expected_seq, self.next_seq)
        if records:
            self._write(records)
        return self.next_seq - 1

    def note(self) -> None:
        """Note where the session ends, for whoever finds it at rest. Where that fails there is a warning, no more."""
        if self._noted == self.next_seq:
            return
        try:
            write_mark(mark_path(self._path), self.session_id, (self.next_seq, self._chain), flushed=self._flushed)
            self._noted = self.next_seq
        except OSError:
            _logger.warning("session %r: where it ends could not be noted", self.session_id, exc_info=True)

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _go_on(self, reading: Reading) -> None:
        self.known = Known(reading.identity, reading.stretch.ends)
        self._chain = reading.stretch.chain
        self._noted = reading.next_seq
        self._end = reading.end

    def _write(self, records: Sequence[bytes]) -> None:
        try:
            if self._descriptor < 0:
                self._open()
            self._require_untouched()
            head = b"" if self._end else head_line(self.session_id, self._take_order())
            data, ends, chain = pack_batch(records, self._chain, self._end + len(head))
            self._put(head + data if head else data, first=bool(head))
        except OSError as error:
            raise failed("writing", self._path, error) from error
        self._end, self._chain = ends[-1], chain
        self.known.ends.extend(ends)

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o600)
        status = os.fstat(self._descriptor)
        self.known.identity = (status.st_dev, status.st_ino)

    def _require_untouched(self) -> None:
        status = os.fstat(self._descriptor)
        if status.st_nlink == 0:
            raise removed(self.session_id, self._path)
        if status.st_size != self._end:
            raise moved_on(self.session_id)

    def _put(self, data: bytes, *, first: bool) -> None:
        try:
            write_all(self._descriptor, data)
            if self._flushed:
                flush(self._descriptor)
                if first:
                    flush_folder(self._path.parent)
        except BaseException:
            self._take_back()
            raise

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._end)
            if self._flushed:
                flush(self._descriptor)
        except OSError:
            self._broken = True
            _logger.exception("session %r: a failed append could not be taken back", self.session_id)


def _take_leave_of_the_missing(path: Path, session_id: str, reading: Reading, flushed: bool) -> None:
    """Report acknowledged records that are gone with a torn tail or a power cut, and note what there is instead."""
    mark = mark_of(path)
    if mark is None or mark.next_seq <= reading.next_seq:
        return
    _logger.warning(
        "session %r holds %d records, and %s notes %d that were acknowledged: a power cut has taken the others, or the "
        "file was cut",
        session_id, reading.next_seq, mark.path, mark.next_seq,
    )  # fmt: skip
    try:
        write_mark(mark.path, session_id, (reading.next_seq, reading.stretch.chain), flushed=flushed)
    except OSError as error:
        raise failed("writing", mark.path, error) from error


def _set_tail_aside(path: Path, session_id: str, reading: Reading, flushed: bool) -> None:
    """Copy the torn tail into a file of its own and cut it off the log."""
    end = reading.end
    try:
        with open(path, "r+b", buffering=0) as file:
            file.seek(end)
            aside = _new_beside(path, file.read(), flushed)
            file.truncate(end)
            if flushed:
                flush(file.fileno())
                flush_folder(path.parent)
    except OSError as error:
        raise failed("cutting the torn tail off", path, error) from error
    _logger.warning(
        "session %r: an append was never finished; its %d bytes behind record %d were cut off and kept in %s",
        session_id, reading.stretch.torn, reading.next_seq - 1, aside,
    )  # fmt: skip


def _new_beside(path: Path, data: bytes, flushed: bool) -> Path:
    for number in count(1):
        aside = path.with_name(f"{path.stem}.torn-{number}")
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
        except FileExistsError:
            continue
        try:
            write_all(descriptor, data)
            if flushed:
                flush(descriptor)
        except BaseException:
            remove(aside)
            raise
        finally:
            os.close(descriptor)
        return aside
    raise AssertionError  # `count` never ends


def torn_files(path: Path) -> list[Path]:
    """The tails that were set aside beside a log, oldest first. Raises `SessionError`."""
    try:
        found = list(path.parent.glob(f"{path.stem}.torn-*"))
    except OSError as error:
        raise failed("listing", path.parent, error) from error
    return sorted(found, key=lambda aside: (len(aside.name), aside.name))
