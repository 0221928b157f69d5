"""A SQLite file of sessions, and one connection to it that one at a time works with."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakSet

from deepstrike.errors import CorruptLog, SessionError
from deepstrike.sessions.disk import BINARY, make_folder
from deepstrike.sessions.lane import Lane
from deepstrike.sessions.refusals import failed, newer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

VERSION: Final = 1
_APPLICATION: Final = 0x6473_746B  # "dstk"
BUSY_MS: Final = 10_000
"""How long a thread waits for another process that writes."""
_FORK_SECONDS: Final = 5.0
_SQLITE_FULL: Final = 13
_SQLITE_BUSY: Final = (5, 6)

_logger = logging.getLogger("deepstrike")

_LAYOUT: Final = (
    "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL, seal INTEGER, sealed INTEGER)",
    "CREATE UNIQUE INDEX sessions_by_id ON sessions (id)",
    "CREATE TABLE records (place INTEGER PRIMARY KEY, seal INTEGER, record BLOB)",
    "CREATE TABLE blobs (ref TEXT PRIMARY KEY, data BLOB NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


class Database:
    """Opened when it is first worked with, and again in a forked child.

    `flushed`: every commit is flushed to the disk. Work on an idle connection may be done where the caller is, between
    `enter` and `leave`; it does not wait for other processes then. All other work is done in a thread and waits up to
    `BUSY_MS`.
    """

    __slots__ = ("__weakref__", "_connection", "_flushed", "_path", "lane")

    def __init__(self, path: Path, *, flushed: bool) -> None:
        self.lane = Lane()
        self._path = path
        self._flushed = flushed
        self._connection: sqlite3.Connection | None = None
        _databases.add(self)

    def enter(self) -> sqlite3.Connection | None:
        """The connection for short work right here, if it is open and idle; `lane.leave()` must follow then."""
        if not self.lane.enter():
            return None
        connection = self._connection
        if connection is None:
            self.lane.leave()
        return connection

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` in a thread when its turn has come. Raises `SessionError` for what SQLite raises."""
        return await self.lane.run(lambda: self._patiently(work))

    def close(self) -> None:
        """Close the connection; for whoever has the lane. It opens again when it is needed."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def close_at_exit(self) -> None:
        """Close the connection for good, unless somebody still works with it."""
        if self.lane.hold(1.0):
            self.close()
            self.lane.leave()

    def settle(self) -> None:
        """Move what was written from the write-ahead log to its place, and begin that log anew: both flush the disk.

        For a thread that has the lane. Where a reader is in the way, the next time will do.
        """
        if self._connection is None:
            return
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            # The first write after it flushes the head of the new log: done here, so that no event loop waits for it.
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
        except sqlite3.OperationalError:
            _logger.debug("%s: no checkpoint this time", self._path, exc_info=True)

    def _patiently(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = _connect(self._path, flushed=self._flushed)
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            try:
                return work(self._connection)
            finally:
                self._connection.execute("PRAGMA busy_timeout = 0")
        except (sqlite3.Error, UnicodeError) as error:
            raise told(self._path, error) from error

    def _after_fork(self) -> None:
        self.lane = Lane()
        if self._connection is not None:
            # Its use, even its end, would disturb the locks of the parent, who still works with it.
            _orphans.append(self._connection)
            self._connection = None


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All of the block or nothing of it."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def told(path: Path, error: sqlite3.Error | UnicodeError) -> SessionError:
    """An error of SQLite as one of ours: `CorruptLog`, or code `disk_full`, `log_busy` (both `retryable`), `log_io`.

    Python 3.10 does not tell SQLite's own code: there everything but damage is `log_io`.
    """
    # The class that "malformed" and "not a database" have, and nothing else; or words of SQLite that are no text.
    if type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeError):
        return CorruptLog(
            f"{path} is damaged or no database: {error}; nothing was changed, "
            "restore a copy, or save what sqlite3's .recover finds"
        )
    code = vars(error).get("sqlite_errorcode", 0) & 0xFF
    if code == _SQLITE_FULL:
        return SessionError(
            f"writing {path} failed: {error}; what was acknowledged before is safe, make room and try again",
            code="disk_full",
            retryable=True,
        )
    if code in _SQLITE_BUSY:
        return SessionError(
            f"{path} was locked by another program for {BUSY_MS // 1000} s; find the one that keeps it, or try again",
            code="log_busy",
            retryable=True,
        )
    return SessionError(f"{path}: {error}; check the file and its folder", code="log_io")


def _connect(path: Path, *, flushed: bool) -> sqlite3.Connection:
    try:
        make_folder(path.parent)
        _make_file(path)
    except OSError as error:
        raise failed("making", path, error) from error
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        _require_ours(connection, path)
        connection.execute(f"PRAGMA synchronous = {'FULL' if flushed else 'NORMAL'}")
        connection.execute("PRAGMA secure_delete = ON")  # a deleted session leaves no bytes
        if not flushed:
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # it would flush within an append: see `settle`
    except BaseException:
        connection.close()
        raise
    return connection


def _make_file(path: Path) -> None:
    """Make the file for its user alone; SQLite gives the files beside it the same rights."""
    # Never opened where it is there: closing it would give up the locks that SQLite holds in this process.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600))


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Lay out a new file; refuse one of a later release or of another program."""
    if not _is_laid_out(connection, path):
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            if not _is_laid_out(connection, path):
                for statement in _LAYOUT:
                    connection.execute(statement)


def _is_laid_out(connection: sqlite3.Connection, path: Path) -> bool:
    """False for an empty file. Raises `SessionError` for what is not ours to use."""
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    if application == _APPLICATION and version == VERSION:
        return True
    if application == _APPLICATION and version > VERSION:
        raise newer(path, version, VERSION)
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    if application or version or tables:
        raise SessionError(
            f"{path} is a SQLite database, but not one of session logs; nothing was changed, name another file",
            code="newer_format" if application == _APPLICATION else "log_io",
        )
    return False


_databases: WeakSet[Database] = WeakSet()
_orphans: list[sqlite3.Connection] = []
_held_for_fork: list[Database] = []
_forking = Lock()


def _before_fork() -> None:
    """SQLite's own book of locks is copied into the child, where it would be wrong: so fork with no connection open."""
    _forking.acquire()
    for database in list(_databases):
        if database.lane.hold(_FORK_SECONDS):
            database.close()
            _held_for_fork.append(database)


def _after_fork_in_parent() -> None:
    for database in _held_for_fork:
        database.lane.leave()
    _held_for_fork.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    for database in list(_databases):
        database._after_fork()
    _held_for_fork.clear()
    _forking.release()


if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
