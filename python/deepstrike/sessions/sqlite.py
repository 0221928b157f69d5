"""A session log in one SQLite file, with a lock of the system for each session that a run is live on."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakSet, finalize

from deepstrike.errors import ConfigError, CorruptLog, SessionError
from deepstrike.sessions import blob_rows, rows
from deepstrike.sessions.blob import is_ref
from deepstrike.sessions.database import Database, Told
from deepstrike.sessions.durability import Durability, flushes
from deepstrike.sessions.erasing import Erasing
from deepstrike.sessions.given_path import given_path
from deepstrike.sessions.lane import in_thread
from deepstrike.sessions.listing import Unreadable
from deepstrike.sessions.lock import SessionLock
from deepstrike.sessions.mark import digest_of
from deepstrike.sessions.marks import Marks
from deepstrike.sessions.names import check_id
from deepstrike.sessions.refusals import (
    damaged,
    not_the_owner,
    other_seq,
    removed,
    unknown_blob,
    unknown_session,
)
from deepstrike.sessions.verify import LogReport, report_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepstrike.sessions.mark import Notes

T = TypeVar("T")

_logger = logging.getLogger("deepstrike")

SMALL: Final = 1 << 18
"""A batch of at most so many bytes is handed to the operating system where the caller is."""
LOOK_EVERY: Final = 8
"""After so many batches it is looked whether the file is still there; each time would cost a tenth of an append."""
SETTLE_BYTES: Final = 1 << 23
"""After about so much was written, the write-ahead log is moved to its place."""
LOOKS: Final = 4
"""How often a session is looked at that is deleted and begun anew meanwhile."""
_PAGES: Final = 4096


@dataclass(slots=True, eq=False)
class _Held:
    """A session in the hands of an owner in this process. `tail` is None until its first record.

    `changes` are those of the database when it was acquired, `appended` counts its batches since.
    """

    session_id: str
    owner: str
    lock: SessionLock
    notes: Notes
    changes: int
    tail: rows.Tail | None
    appended: int = 0

    @property
    def next_seq(self) -> int:
        return 0 if self.tail is None else self.tail.next_seq


class SqliteSessionLog:
    """Keeps all sessions in the SQLite file `path`, which is made with the first session.

    `durability="os"`: an append has been handed to the operating system when it returns, so it outlives this process,
    killed or not; a power cut may take the last of them and leaves a whole log. `"disk"`: it has been flushed to the
    disk as well, in a thread, so it outlives a power cut.

    While a run is live its session is locked (`flock`, on a file in the folder `<path>-locks`): a second owner in any
    process is refused, a crashed one's lock is free at once. Anybody may read meanwhile. A batch is one transaction, so
    there is no torn tail; damage is found by the checksums when records are read, and is `CorruptLog`. The files are
    readable by their user alone. Bytes of deleted sessions are overwritten. After a fork the child has no session: its
    parent's stay the parent's. A file that is removed under a live run is missed some batches later. Keep it on a local
    disk.

    Raises `ConfigError` where `path` is a folder or no path, or `durability` another word, `SessionError` with code
    `disk_full`, `log_busy` (another program has kept the file locked for 10 s), `log_io`, `no_lock` or `newer_format`.
    """

    __slots__ = (
        "__weakref__",
        "_closing",
        "_erasing",
        "_flushed",
        "_guard",
        "_held",
        "_marks",
        "_path",
        "_reader",
        "_tokens",
        "_unsettled",
        "_writer",
    )

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = "os") -> None:
        if str(path) in ("", ":memory:"):
            raise ConfigError(f"path={str(path)!r} names no file: give one, or use InMemorySessionLog")
        self._path = given_path("path", path)
        if self._path.is_dir():
            raise ConfigError(f"path={os.fspath(path)!r} is a folder: name a file in it, or use FileSessionLog")
        self._flushed = flushes(durability)
        self._marks = marks = Marks(self._path, flushed=self._flushed)
        told = Told(marks.forget_all, marks.clear_after_close)
        self._writer = Database(self._path, told, flushed=self._flushed, writes=True)
        self._reader = Database(self._path, told, flushed=self._flushed, writes=False)
        self._guard = Lock()
        self._held: dict[str, _Held] = {}
        self._tokens = count(1)
        self._unsettled = 0
        self._erasing = Erasing(self._path, self._writer, marks)
        self._closing = finalize(self, _close_in_threads, self._reader, self._writer)
        self._closing.atexit = False
        _logs.add(self)

    def with_durability(self, durability: Durability) -> SqliteSessionLog:
        """The same file, appended to with another durability from now on. Raises `ConfigError` for another word."""
        return SqliteSessionLog(self._path, durability=durability)

    async def acquire(self, session_id: str) -> str:
        """See `SessionLog.acquire`. Raises `CorruptLog` where the end of the session is damaged."""
        check_id(session_id)
        lock = await in_thread(partial(self._marks.lock, session_id), SessionLock.release)
        try:
            tail, notes = await self._writer.look(partial(self._begin, session_id), _unbegin)
        except BaseException:
            lock.release()
            raise
        with self._guard:
            owner = f"owner-{os.getpid()}-{next(self._tokens)}"
            self._held[session_id] = _Held(session_id, owner, lock, notes, self._writer.changes, tail)
            return owner

    async def release(self, session_id: str, owner: str) -> None:
        """See `SessionLog.release`. Notes where the session ends; where that fails there is a warning, no more.

        Cancelling it while an append is under way returns at once; the session is given back then.
        """
        held = self._held.get(session_id)
        if held is None or held.owner != owner:
            return
        try:
            await self._note_end(held)
        except BaseException:
            self._writer.lane.post(partial(self._give_back, held))
            raise
        self._give_back(held)
        self._count(0)

    async def _note_end(self, held: _Held) -> None:
        if not held.appended:
            await self._writer.lane.passed()
            return
        try:
            self._require_file(held)
            await self._writer.run(partial(self._seal, held))
        except SessionError:
            _logger.warning("session %r: where it ends could not be noted", held.session_id, exc_info=True)

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        """See `SessionLog.append`. An empty batch writes nothing and returns the last seq."""
        held = self._held.get(session_id)
        if held is None or held.owner != owner:
            raise not_the_owner(session_id, owner)
        if held.appended % LOOK_EVERY == 0:
            self._require_file(held)
        size = sum(map(len, records))
        if size <= SMALL and held.tail is not None and not self._flushed and self._writer.quiet():
            connection = self._writer.enter()
            if connection is not None:
                try:
                    return self._append(connection, held, records, expected_seq)
                except (sqlite3.Error, UnicodeError):
                    pass  # another process writes, or there is no room: a thread waits, or finds out
                finally:
                    self._writer.lane.leave()
                    self._count(size)
        self._require_file(held)  # the thread would make a new file where it was removed
        batch = tuple(records)
        return await self._writer.run(lambda connection: self._append_apart(connection, held, batch, expected_seq))

    async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
        """See `SessionLog.read`. A `from_seq` below 0 counts as 0. It waits for an append of this object."""
        check_id(session_id)
        if session_id in self._held:
            await self._writer.lane.passed()
        first = max(from_seq, 0)
        found = await self._look(None, partial(self._records, session_id, first))
        if found is not None and found.damage is not None:
            raise damaged(session_id, found.damage.index, found.damage.reason, str(self._path))
        return [] if found is None else found.records

    async def latest_seq(self, session_id: str) -> int:
        """See `SessionLog.latest_seq`."""
        check_id(session_id)
        held = self._held.get(session_id)
        if held is None:
            tail = await self._look(None, partial(self._tail, session_id))
            return -1 if tail is None else tail.next_seq - 1
        await self._writer.lane.passed()
        return held.next_seq - 1

    async def sessions(self) -> list[str]:
        """See `SessionLog.sessions`. Raises `CorruptLog` where the list is damaged."""
        return await self._look([], rows.session_ids)

    async def unreadable(self) -> list[Unreadable]:
        """The sessions that the database has lost altogether, as far as that is noted; `sessions` does not list them.

        Where a database cannot tell its sessions, `sessions` raises.
        """
        noted = [mark for mark in await in_thread(self._marks.all) if mark.binds]
        if not noted or not self._path.exists():
            return []
        there = set(map(digest_of, await self.sessions()))
        return [
            Unreadable(str(mark.path), f"it notes {mark.next_seq} acknowledged records of {mark.hint!r}, which is lost")
            for mark in noted
            if mark.digest not in there
        ]

    async def delete(self, session_id: str) -> None:
        """See `SessionLog.delete`. The session's bytes are overwritten, in the write-ahead log too.

        The file is rewritten for that. Where that cannot be done, for want of room or because a run is live and the
        file larger than 64 MiB, a warning says so.

        Raises `SessionError` with code `log_busy` where somebody has read the file for 10 s: the session is gone then,
        and its bytes are overwritten with the next `delete` of it or of another, or when this log is settled or closed.
        """
        check_id(session_id)
        await self._erasing.delete(session_id)

    async def verify(self, session_id: str) -> LogReport:
        """Read the whole session and every blob that it names. Changes nothing. Raises `UnknownSession`."""
        check_id(session_id)
        found = await self._look(None, partial(self._records, session_id, 0))
        if found is None:
            raise unknown_session(session_id)
        damage = None
        if found.damage is not None:
            damage = damaged(session_id, found.damage.index, found.damage.reason, str(self._path)).message
        return await report_on(self, session_id, found.records, damage=damage)

    async def intact(self, session_id: str) -> list[bytes]:
        """The records before any damage, all where there is none. Raises `UnknownSession`, or `CorruptLog` where the
        database cannot be read.
        """
        check_id(session_id)
        found = await self._look(None, partial(self._records, session_id, 0))
        if found is None:
            raise unknown_session(session_id)
        return found.records

    async def put_blob(self, session_id: str, data: bytes) -> str:
        """See `SessionLog.put_blob`. The same bytes are kept once in a session."""
        check_id(session_id)
        held = self._held.get(session_id)
        if held is not None:
            self._require_file(held)
        kept = bytes(data)
        return await self._writer.run(lambda connection: blob_rows.put(connection, session_id, kept))

    async def get_blob(self, ref: str, offset: int = 0, length: int | None = None) -> bytes:
        """See `SessionLog.get_blob`. An `offset` or `length` below 0 counts as 0. Raises `CorruptLog` on damage, which
        is looked for where the whole is read.
        """
        found = None
        if is_ref(ref):
            found = await self._look(None, lambda connection: blob_rows.get(connection, ref, max(offset, 0), length))
        if found is None:
            raise unknown_blob(ref)
        return found

    def close(self) -> None:
        """Close the file; it opens again when it is needed. What is collected or left at the end is closed so too.

        Blocks, at most for a second where somebody still works with it: then it stays open.
        """
        _close(self._reader, self._writer)

    def _require_file(self, held: _Held) -> None:
        """SQLite would go on writing to a file that was removed, and nobody would find that again."""
        if not self._writer.in_place(held.changes):
            raise removed(held.session_id, self._path)

    # What follows blocks; it runs in threads of the lanes, or where it is short.

    async def _look(self, nothing: T, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` with the connection for reading; where there is no file, give `nothing` and make none."""
        if not self._path.exists():
            return nothing
        return await self._reader.look(work)

    def _records(self, session_id: str, from_seq: int, connection: sqlite3.Connection) -> rows.Found | None:
        for _ in range(LOOKS):
            mark = self._marks.of(session_id)
            found = rows.records_from(connection, session_id, from_seq, mark)
            if found is None or found.damage is None or self._marks.of(session_id) == mark:
                break  # else it was deleted, or begun anew, between the two looks
        return found

    def _begin(self, session_id: str, connection: sqlite3.Connection) -> tuple[rows.Tail | None, Notes]:
        """Where the session ends, and where it is noted how far it comes."""
        tail = self._tail(session_id, connection)
        end = (0, 0) if tail is None else (tail.next_seq, tail.chain)
        return tail, self._marks.notes(session_id, end)

    def _tail(self, session_id: str, connection: sqlite3.Connection) -> rows.Tail | None:
        for left in reversed(range(LOOKS)):
            mark = self._marks.of(session_id)
            try:
                return rows.tail_of(connection, session_id, mark)
            except CorruptLog:
                if not left or self._marks.of(session_id) == mark:
                    raise
        raise AssertionError  # the last look returns or raises

    def _give_back(self, held: _Held) -> None:
        with self._guard:
            if self._held.get(held.session_id) is not held:
                return
            del self._held[held.session_id]
        self._marks.rest(held.session_id, held.notes)
        held.lock.release()

    def _append_apart(
        self, connection: sqlite3.Connection, held: _Held, records: Sequence[bytes], expected_seq: int
    ) -> int:
        self._writer.beginning_log()
        return self._append(connection, held, records, expected_seq)

    def _append(self, connection: sqlite3.Connection, held: _Held, records: Sequence[bytes], expected_seq: int) -> int:
        if self._held.get(held.session_id) is not held:  # given back while this waited
            raise not_the_owner(held.session_id, held.owner)
        tail = held.tail
        seq = 0 if tail is None else tail.next_seq
        if expected_seq != seq:
            raise other_seq(held.session_id, expected_seq, seq)
        if self._writer.changes != held.changes:
            raise removed(held.session_id, self._path)
        if not records:
            return seq - 1
        held.appended += 1
        if tail is None:
            tail = rows.begin(connection, held.session_id, records)
        else:
            tail = rows.append(connection, held.session_id, tail, records)
        held.tail = tail
        held.notes.note(tail.next_seq, tail.chain)
        return tail.next_seq - 1

    def _seal(self, held: _Held, connection: sqlite3.Connection) -> None:
        if held.tail is not None:
            rows.seal(connection, held.tail)

    def _count(self, size: int) -> None:
        self._unsettled += size + _PAGES
        if self._unsettled >= SETTLE_BYTES:
            self._unsettled = 0
            self._writer.lane.post(self._settle)

    def _settle(self) -> None:
        at_rest = self._marks.at_rest()
        if self._writer.settle():
            self._marks.clear(at_rest)

    def _after_fork(self) -> None:
        """In a forked child: close the copies of the parent's locks, which stay the parent's."""
        for held in self._held.values():
            held.notes.close()
            held.lock.drop()
        self._guard = Lock()
        self._held = {}
        self._marks.after_fork()


def _unbegin(begun: tuple[rows.Tail | None, Notes]) -> None:
    begun[1].close()


def _close(*databases: Database) -> None:
    for database in databases:
        database.close_at_exit()


def _close_in_threads(*databases: Database) -> None:
    """A log is collected anywhere, on an event loop too: what flushes the disk is done elsewhere."""
    for database in databases:
        database.close_in_thread()


_logs: WeakSet[SqliteSessionLog] = WeakSet()


def _leave_the_parents_sessions() -> None:
    for log in _logs:
        log._after_fork()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_the_parents_sessions)
