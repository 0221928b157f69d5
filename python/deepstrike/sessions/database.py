"""A SQLite file of sessions, and one connection to it that one at a time works with."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sqlite3
import sys
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from weakref import WeakSet

from deepstrike.errors import CorruptLog, SessionError
from deepstrike.sessions.disk import BINARY, flush_folder, make_folder
from deepstrike.sessions.lane import Lane
from deepstrike.sessions.refusals import failed, newer
from deepstrike.write_ahead import settled_stamps, stamps, transaction, write_ahead

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deepstrike.write_ahead import Stamps

T = TypeVar("T")

VERSION: Final = 1
_APPLICATION: Final = 0x6473_746B  # "dstk"
BUSY_MS: Final = 10_000
"""How long a thread waits for another process that writes."""
LOOK_SECONDS: Final = 0.005
"""How often it is looked, before a write on an event loop, whether somebody has moved the write-ahead log."""
REWRITE_BYTES: Final = 1 << 26
"""Others who write wait while the file is rewritten: with more than so many bytes in it they might give up."""
_FORK_SECONDS: Final = 5.0
_SQLITE_FULL: Final = 13
_SQLITE_NO_INDEX: Final = 10 | 19 << 8
"""There was no room for the index of the write-ahead log."""
_SQLITE_BUSY: Final = (5, 6)

_logger = logging.getLogger("deepstrike")

_LEFT: Final = (
    "pieces of what was deleted may be left in it; delete() another session, or let sqlite3 VACUUM it, when there is "
    "room and no run is live"
)
_LAYOUT: Final = (
    "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL, seal INTEGER, sealed INTEGER)",
    "CREATE UNIQUE INDEX sessions_by_id ON sessions (id)",
    "CREATE TABLE records (place INTEGER PRIMARY KEY, seal INTEGER, record BLOB)",
    "CREATE TABLE blobs (ref TEXT PRIMARY KEY, data BLOB NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


class Told(NamedTuple):
    """What is called while a file is laid out, which holds nothing, and when a connection has been closed."""

    laid_out: Callable[[], None]
    closed: Callable[[], None]


class Database:
    """Opened when it is first worked with, again in a forked child, and again where another file has taken its place.

    `flushed`: every commit is flushed to the disk. `writes`: a connection that may write on the event loop. `changes`
    counts how often the file was another than before. Work on an idle connection may be done where the caller
    is, between `enter` and `leave`, and does not wait for others then. All other work is done in a thread and waits up
    to `BUSY_MS`.
    """

    __slots__ = (
        "__weakref__",
        "_begun_at",
        "_connection",
        "_file",
        "_flushed",
        "_look_at",
        "_path",
        "_told_of",
        "_writes",
        "changes",
        "lane",
    )

    def __init__(self, path: Path, told: Told, *, flushed: bool, writes: bool) -> None:
        self.lane = Lane()
        self._path = path
        self._flushed = flushed
        self._writes = writes
        self._told_of = told
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._begun_at: tuple[int, int, int] | None = None
        self._look_at = 0.0
        self.changes = 0
        _databases.add(self)

    def enter(self) -> sqlite3.Connection | None:
        """The connection for short work right here, if it is open and idle; `lane.leave()` must follow then."""
        if not self.lane.enter():
            return None
        connection = self._connection
        if connection is None:
            self.lane.leave()
        return connection

    def quiet(self) -> bool:
        """Whether a write here flushes nothing. The first one to a write-ahead log that somebody has moved does.

        What stands in its place is looked at, at most every `LOOK_SECONDS`: nobody else changes the file.
        """
        now = asyncio.get_running_loop().time()
        if 0 <= self._look_at - now <= LOOK_SECONDS:
            return True
        self._look_at = now + LOOK_SECONDS
        return _stamp(self._path) == self._begun_at

    def beginning_log(self) -> None:
        """What is written next begins the write-ahead log anew where it was moved; for whoever writes in a thread."""
        self._begun_at = _stamp(self._path)

    def in_place(self, changes: int) -> bool:
        """Whether the file is still the one that it was at so many changes."""
        return self.changes == changes and _identity(self._path) == self._file

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` in a thread when its turn has come. Raises `SessionError` for what SQLite raises."""
        return await self.lane.run(lambda: self._told(work))

    async def look(self, work: Callable[[sqlite3.Connection], T], undo: Callable[[T], None] | None = None) -> T:
        """`run` for work that only reads. Damage is believed when a new connection finds it too.

        SQLite calls it damage where a read has failed at the wrong moment. What nobody waits for any more when it has
        been done is handed to `undo`.
        """
        return await self.lane.run(lambda: self._looked(work), undo)

    def close(self) -> None:
        """Close the connection; for whoever has the lane. It opens again when it is needed.

        The last one that is closed moves the write-ahead log to its place, and flushes the disk.
        """
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
            self._told_of.closed()

    def close_in_thread(self) -> None:
        """Close the connection for good, in a thread, when its turn has come. `close_at_exit` waits for that."""
        self.lane.post(self.close)

    def close_at_exit(self) -> None:
        """Close the connection for good, unless somebody still works with it."""
        if self.lane.hold(1.0):
            self.close()
            self.lane.leave()

    def settle(self) -> bool:
        """Move what was written from the write-ahead log to its place, and begin that log anew: both flush the disk.

        For a thread that has the lane. False where a reader was in the way: the next time will do.
        """
        if self._connection is None:
            return False
        try:
            [(busy, written, moved)] = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._begin_log(self._connection)
        except sqlite3.OperationalError:
            _logger.debug("%s: no checkpoint this time", self._path, exc_info=True)
            return False
        return not busy and written == moved

    def rewrite(self, connection: sqlite3.Connection, *, live: bool) -> None:
        """Copy all that is kept to new pages: SQLite leaves bytes of other rows in a page that it has split.

        A warning where that cannot be done, or must not: for a large file while a run is `live` on it.
        """
        [(pages, size)] = connection.execute("SELECT * FROM pragma_page_count, pragma_page_size").fetchall()
        if live and pages * size > REWRITE_BYTES:
            _logger.warning("%s is large and a run is live on it, so it is not rewritten now: %s", self._path, _LEFT)
            return
        try:
            connection.execute("VACUUM")
        except sqlite3.Error as error:
            _logger.warning("%s could not be rewritten (%s): %s", self._path, error, _LEFT)

    def erase(self, connection: sqlite3.Connection) -> bool:
        """Cut the write-ahead log, which has pages as they were before something was deleted; then begin it anew.

        Waits for nobody: False where another connection reads or writes.
        """
        connection.execute("PRAGMA busy_timeout = 0")
        [(busy, _, _)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        if not busy:
            self._begin_log(connection)
        return not busy

    def _looked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._patiently(work)
        except (sqlite3.Error, UnicodeError) as error:
            if not _is_damage(error):
                raise told(self._path, error) from error
        self.close()
        return self._told(work)

    def _told(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._patiently(work)
        except (sqlite3.Error, UnicodeError) as error:
            raise told(self._path, error) from error

    def _patiently(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._opened()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        try:
            return work(connection)
        finally:
            connection.execute("PRAGMA busy_timeout = 0")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and _identity(self._path) != self._file:
            self.close()  # it is open on a file that was removed: what stands in its place counts
            self.changes += 1
        if self._connection is None:
            self._connection = _connect(self._path, self._told_of.laid_out, flushed=self._flushed)
            self._file = _identity(self._path)
            if self._writes and not self._flushed:
                self._begin_log(self._connection)
        return self._connection

    def _begin_log(self, connection: sqlite3.Connection) -> None:
        """The first write to a new write-ahead log flushes its head: done here, so that no event loop waits for it."""
        self.beginning_log()
        connection.execute(f"PRAGMA user_version = {VERSION}")

    def _after_fork(self) -> None:
        self.lane = Lane()
        if self._connection is not None:
            # Its use, even its end, would disturb the locks of the parent, who still works with it.
            _orphans.append(self._connection)
            self._connection = None


def told(path: Path, error: sqlite3.Error | UnicodeError) -> SessionError:
    """An error of SQLite as one of ours: `CorruptLog`, or code `disk_full`, `log_busy` (both `retryable`), `log_io`.

    Python 3.10 does not tell SQLite's own code: there everything but damage is `log_io`.
    """
    if _is_damage(error):
        return CorruptLog(
            f"{path} is damaged or no database: {error}; nothing was changed, "
            "restore a copy, or save what sqlite3's .recover finds"
        )
    extended = vars(error).get("sqlite_errorcode", 0)
    code = extended & 0xFF
    if code == _SQLITE_FULL or extended == _SQLITE_NO_INDEX:
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


def _is_damage(error: sqlite3.Error | UnicodeError) -> bool:
    """The class that "malformed" and "not a database" have, and nothing else; or words of SQLite that are no text."""
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeError)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at `path`, None where there is none. Opens nothing."""
    found = _stamp(path)
    return None if found is None else found[:2]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Which file stands at `path` and when it was changed, None where there is none. Opens nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _connect(path: Path, laid_out: Callable[[], None], *, flushed: bool) -> sqlite3.Connection:
    try:
        make_folder(path.parent, flushed=flushed)
        if _make_file(path) and flushed:
            flush_folder(path.parent)
    except OSError as error:
        raise failed("making", path, error) from error
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        _require_ours(connection, path, laid_out)
        connection.execute(f"PRAGMA synchronous = {'FULL' if flushed else 'NORMAL'}")
        connection.execute("PRAGMA secure_delete = ON")  # a deleted session leaves no bytes
        if not flushed:
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # it would flush within an append: see `settle`
    except BaseException:
        connection.close()
        raise
    return connection


def _make_file(path: Path) -> bool:
    """Make the file for its user alone; SQLite gives the files beside it the same rights. False where it was there."""
    # Never opened where it is there: closing it would give up the locks that SQLite holds in this process.
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600))
    except FileExistsError:
        return False
    return True


def _require_ours(connection: sqlite3.Connection, path: Path, laid_out: Callable[[], None]) -> None:
    """Lay out a new file; refuse one of a later release or of another program."""
    if not _is_laid_out(settled_stamps(connection), path):
        # Before there is a write-ahead log, so that a file that has lost its log is not taken for a new one.
        with transaction(connection):
            if not _is_laid_out(stamps(connection), path):  # another process may have been faster
                laid_out()
                for statement in _LAYOUT:
                    connection.execute(statement)
    write_ahead(connection, BUSY_MS / 1000)


def _is_laid_out(found: Stamps, path: Path) -> bool:
    """False for an empty file. Raises `SessionError` for what is not ours to use."""
    if (found.application, found.version) == (_APPLICATION, VERSION):
        return True
    if found.application == _APPLICATION and found.version > VERSION:
        raise newer(path, found.version, VERSION)
    if any(found):
        raise SessionError(
            f"{path} is a SQLite database, but not one of session logs; nothing was changed, name another file",
            code="newer_format" if found.application == _APPLICATION else "log_io",
        )
    return False


_databases: WeakSet[Database] = WeakSet()
_orphans: list[sqlite3.Connection] = []
_held_for_fork: list[Database] = []
_forking = Lock()


def _close_all() -> None:
    for database in list(_databases):
        database.close_at_exit()


atexit.register(_close_all)


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
