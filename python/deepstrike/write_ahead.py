"""What a SQLite file with a write-ahead log needs when several begin on it at once."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAUSE_SECONDS: Final = 0.02


class Stamps(NamedTuple):
    """What a file says of itself: zeros and no tables where it is new."""

    application: int
    version: int
    tables: int


@contextmanager
def transaction(connection: sqlite3.Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """All of the block or nothing of it, also if the process is killed.

    Other writers wait, unless it is `DEFERRED`: then the block only reads, and sees one state of the file.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def stamps(connection: sqlite3.Connection) -> Stamps:
    """Three questions: ask them within a transaction where another process may lay the file out meanwhile."""
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return Stamps(application, version, tables)


def settled_stamps(connection: sqlite3.Connection) -> Stamps:
    """`stamps` of one moment. A file that has an application is laid out, as one that is laid out has one."""
    found = stamps(connection)
    if found.application or not any(found):
        return found
    with transaction(connection):
        return stamps(connection)


def write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Have the file keep a write-ahead log; one that does stays as it is.

    SQLite itself does not wait where another process opens the file meanwhile: here that is done, for `seconds`.
    """
    pause = Event()
    for _ in range(int(seconds / _PAUSE_SECONDS)):
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
            return
        pause.wait(_PAUSE_SECONDS)
    connection.execute("PRAGMA journal_mode = WAL")
