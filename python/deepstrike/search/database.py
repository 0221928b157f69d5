"""A SQLite file of ours, and the one connection of this process to it."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final
from weakref import WeakSet, finalize

from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.text import path_text
from deepstrike.write_ahead import settled_stamps, stamps, transaction, write_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.write_ahead import Stamps

BUSY_MS: Final = 10_000
"""How long one waits for another process that writes."""
_FORK_SECONDS: Final = 5.0
_SQLITE_BUSY: Final = (5, 6)

_logger = logging.getLogger("deepstrike")


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file is laid out as. Another `version` of the same `application` is another layout.

    `what` names its kind in messages. `rebuilt`: the file only repeats what stands elsewhere, so one that is damaged or
    laid out otherwise is made anew.
    """

    what: str
    application: int
    version: int
    statements: tuple[str, ...]
    rebuilt: bool = False


class Database:
    """Opened when it is first worked with, and again in a forked child; safe to use from any thread.

    The file is readable by its user alone, and what is deleted in it is overwritten. Raises `ConfigError` when it is
    built on a path that is a folder or none.
    """

    __slots__ = ("__weakref__", "_closing", "_connection", "_layout", "_lock", "path")

    def __init__(self, path: str | os.PathLike[str], layout: Layout) -> None:
        if path in ("", ":memory:"):
            raise ConfigError(f"{path!r} names no file for {layout.what}: give the path of one")
        self.path = Path(os.path.abspath(path_text("path", path)))  # a later chdir must not move it
        if self.path.is_dir():
            raise ConfigError(f"{os.fspath(path)!r} is a folder: {layout.what} needs a file, name one in it")
        self._layout = layout
        self._lock = RLock()
        self._connection: list[sqlite3.Connection] = []
        self._closing = finalize(self, _close_all, self._connection)
        _databases.add(self)

    @contextmanager
    def work(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone inside the block. Errors of SQLite come out as `DeepStrikeError`."""
        with self._lock:
            try:
                if not self._connection:
                    self._connection.append(self._open())
                yield self._connection[0]
            except (sqlite3.Error, OSError) as error:
                raise self._told(error) from error

    def close(self) -> None:
        """Close the connection; it opens again when it is needed."""
        with self._lock:
            _close_all(self._connection)

    def wipe(self) -> None:
        """Overwrite what was deleted: in a page that SQLite has split bytes of other rows stay, and in the log pages as
        they were. So all that is kept is copied to new pages, and the write-ahead log emptied.

        Raises `DeepStrikeError` with code `store_busy` where another process reads for longer than 10 s.
        """
        with self.work() as connection:
            connection.execute("VACUUM")
            [(busy, _, _)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise DeepStrikeError(
                f"{self.path}: what was deleted is still in the write-ahead log, since another process reads the file; "
                "do the same again when that is over",
                code="store_busy",
                retryable=True,
            )

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self.path, self._layout)
        except _Unusable as error:
            if not self._layout.rebuilt:
                raise DeepStrikeError(f"{self.path} {error}", code="store_unusable") from error
            _logger.warning("%s %s; it is made anew", self.path, error)
            for ending in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            return _connect(self.path, self._layout)

    def _told(self, error: sqlite3.Error | OSError) -> DeepStrikeError:
        """The class that "malformed" and "not a database" have, and nothing else, is damage."""
        if type(error) is sqlite3.DatabaseError:
            remedy = "delete the file, it is made anew" if self._layout.rebuilt else "restore a copy"
            return DeepStrikeError(f"{self.path} is damaged: {error}; {remedy}", code="store_damaged")
        busy = vars(error).get("sqlite_errorcode", 0) & 0xFF in _SQLITE_BUSY  # Python 3.10 does not tell the code
        return DeepStrikeError(
            f"{self.path}: {error}; check the file, its folder and who else uses it",
            code="store_busy" if busy else "store_io",
            retryable=busy,
        )

    def _before_fork(self) -> bool:
        if not self._lock.acquire(timeout=_FORK_SECONDS):
            return False
        _close_all(self._connection)
        return True

    def _after_fork_in_child(self) -> None:
        self._lock = RLock()
        # One that could not be closed in time: its use, even its end, would disturb the locks of the parent.
        _orphans.extend(self._connection)
        self._connection.clear()

    def _release(self) -> None:
        self._lock.release()


class _Unusable(Exception):
    """The file is damaged, or not ours; the message goes on from its path."""


def _connect(path: Path, layout: Layout) -> sqlite3.Connection:
    _make(path)
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        _lay_out(connection, layout, path)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException as error:
        connection.close()
        if type(error) is sqlite3.DatabaseError:
            raise _Unusable(f"is damaged or no database ({error}); name another file or restore a copy") from error
        raise
    return connection


def _make(path: Path) -> None:
    """Make the file for its user alone; SQLite gives the files beside it the same rights."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _lay_out(connection: sqlite3.Connection, layout: Layout, path: Path) -> None:
    if _is_laid_out(settled_stamps(connection), layout, path):
        return
    write_ahead(connection, BUSY_MS / 1000)
    with transaction(connection):
        if not _is_laid_out(stamps(connection), layout, path):  # another process may have been faster
            for statement in layout.statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {layout.application}")
            connection.execute(f"PRAGMA user_version = {layout.version}")


def _is_laid_out(found: Stamps, layout: Layout, path: Path) -> bool:
    """False for an empty file. Raises `_Unusable` for another layout, `ConfigError` for what is another program's."""
    if (found.application, found.version) == (layout.application, layout.version):
        return True
    if found.application == layout.application:
        raise _Unusable(
            f"has version {found.version} of {layout.what}, this release has {layout.version}; name another file"
        )
    if any(found):
        raise ConfigError(
            f"{path} is a SQLite file, but not one of {layout.what}; nothing was changed, name another file"
        )
    return False


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        with suppress(sqlite3.Error):
            connections.pop().close()


_databases: WeakSet[Database] = WeakSet()
_orphans: list[sqlite3.Connection] = []
_held_for_fork: list[Database] = []


def _before_fork() -> None:
    """SQLite's own book of locks is copied into the child, where it would be wrong: so fork with no connection open."""
    _held_for_fork.extend(database for database in list(_databases) if database._before_fork())


def _after_fork_in_parent() -> None:
    while _held_for_fork:
        _held_for_fork.pop()._release()


def _after_fork_in_child() -> None:
    _held_for_fork.clear()
    for database in list(_databases):
        database._after_fork_in_child()


if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
