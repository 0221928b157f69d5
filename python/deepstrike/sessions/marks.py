"""The marks of the sessions in a SQLite file, in one file beside it, until their records are where they stay."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Final

from deepstrike.errors import SessionBusy, SessionError
from deepstrike.sessions.disk import make_folder, read_at, write_at
from deepstrike.sessions.lock import SessionLock, locked
from deepstrike.sessions.mark import DIGEST_AT, SIZE, Notes, contents, digest_of, parse
from deepstrike.sessions.names import file_stem
from deepstrike.sessions.refusals import failed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deepstrike.sessions.mark import Mark

_FREE: Final = bytes(SIZE)


class Marks:
    """Of all sessions that are live, and of those at rest whose records are in the write-ahead log only.

    From any thread and process. A place in the file belongs to a session while its lock is held, and while it notes
    something.
    """

    __slots__ = ("_flushed", "_guard", "_locks", "_path", "_resting", "_write_ahead_log")

    def __init__(self, path: Path, *, flushed: bool) -> None:
        self._flushed = flushed
        self._path = path.with_name(f"{path.name}-marks")
        self._locks = path.with_name(f"{path.name}-locks")
        self._write_ahead_log = path.with_name(f"{path.name}-wal")
        self._guard = Lock()
        self._resting: dict[str, bytes] = {}

    def lock(self, session_id: str) -> SessionLock:
        """Lock a session. Raises `SessionBusy`, `SessionError`.

        Whoever puts the marks in order has a lock for a moment, and the file of marks meanwhile: that is waited for.
        """
        try:
            make_folder(self._locks, flushed=self._flushed)
        except OSError as error:
            raise failed("making the folder", self._locks, error) from error
        try:
            return self._take(session_id)
        except SessionBusy:
            self._in_order()
            return self._take(session_id)

    def _take(self, session_id: str) -> SessionLock:
        return SessionLock.take(self._locks / f"{file_stem(session_id)}.lock", session_id)

    def _in_order(self) -> None:
        """Wait for whoever has the file of marks now."""
        if self._path.exists():
            with suppress(OSError), locked(self._path):
                return

    def any_locked(self) -> bool:
        """Whether a run may be live: a lock that a crash has left counts too."""
        return any(self._locks.glob("*.lock"))

    def of(self, session_id: str) -> Mark | None:
        """The session's mark, whoever has the session."""
        data = contents(self._path)
        found = (parse(data[at : at + SIZE], self._path) for at in _places(data, digest_of(session_id)))
        return next((mark for mark in found if mark is not None), None)

    def all(self) -> list[Mark]:
        """Every mark there is."""
        data = contents(self._path)
        found = (parse(data[at : at + SIZE], self._path) for at in range(0, len(data), SIZE))
        return [mark for mark in found if mark is not None]

    def notes(self, session_id: str, end: tuple[int, int]) -> Notes:
        """A place to note how far the session comes, for who has its lock; `end` is how far it is.

        Raises `SessionError`.
        """
        try:
            with locked(self._path) as descriptor:
                data = read_at(descriptor, 0, os.fstat(descriptor).st_size)
                return Notes(self._path, _place(data, digest_of(session_id)), session_id, end, flushed=self._flushed)
        except OSError as error:
            raise failed("opening", self._path, error) from error

    def rest(self, session_id: str, notes: Notes) -> None:
        """What is noted of the session stays, now that it is given back."""
        noted = notes.close()
        with self._guard:
            self._resting[session_id] = noted

    def at_rest(self) -> dict[str, bytes]:
        """What was noted last of the sessions that were given back here so far."""
        with self._guard:
            return dict(self._resting)

    def clear(self, moved: dict[str, bytes]) -> None:
        """Forget what is noted of sessions whose records are where they stay; not where one went on meanwhile."""
        for session_id, noted in moved.items():
            with self._guard:
                if self._resting.get(session_id) == noted:
                    del self._resting[session_id]
            if not self._path.exists():  # removed, with its folder as a rule, which a lock would make anew
                continue
            with suppress(SessionError, OSError), locked(self._path) as descriptor:
                lock = self._take(session_id)
                try:
                    _free(descriptor, session_id, noted)
                finally:
                    lock.release()

    def clear_after_close(self) -> None:
        """When the last connection has been closed, all records are where they stay: there is no write-ahead log."""
        if self._resting and not self._write_ahead_log.exists():
            self.clear(self.at_rest())

    def forget(self, session_id: str) -> None:
        """Forget what is noted of a session, for who has its lock. Raises `SessionError`."""
        try:
            if not self._path.exists():
                return
            with locked(self._path) as descriptor:
                _free(descriptor, session_id, None)
        except OSError as error:
            raise failed("writing", self._path, error) from error

    def forget_all(self) -> None:
        """A new database holds no session: what is noted here is of one that was removed. Raises `SessionError`."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise failed("removing", self._path, error) from error

    def after_fork(self) -> None:
        """In a forked child: the parent's sessions are the parent's."""
        self._guard = Lock()
        self._resting = {}


def _free(descriptor: int, session_id: str, noted: bytes | None) -> None:
    """Free the session's place in the locked file, where it holds `noted` if that is given."""
    data = read_at(descriptor, 0, os.fstat(descriptor).st_size)
    for at in _places(data, digest_of(session_id)):
        if noted in (None, data[at : at + SIZE]):
            write_at(descriptor, at, _FREE)


def _places(data: bytes, digest: bytes) -> Iterator[int]:
    """Where a session's mark stands; more than one only after damage."""
    found = data.find(digest)
    while found >= 0:
        if found % SIZE == DIGEST_AT:
            yield found - DIGEST_AT
        found = data.find(digest, found + 1)


def _place(data: bytes, digest: bytes) -> int:
    """Where the session's mark stands, else a free place, else the end."""
    behind = -(-len(data) // SIZE) * SIZE
    free = (at for at in range(0, behind, SIZE) if data[at : at + SIZE] == _FREE)
    return next(chain(_places(data, digest), free), behind)
