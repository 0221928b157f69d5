"""A session log in a folder: a file for each session, readable while it is written, owned by a lock of the system."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from deepstrike.errors import ConfigError, CorruptLog, SessionBusy
from deepstrike.sessions.blob_files import BlobFiles
from deepstrike.sessions.disk import flush_folder, make_folder, remove
from deepstrike.sessions.durability import Durability, flushes
from deepstrike.sessions.given_path import given_path
from deepstrike.sessions.lane import Lane, in_thread
from deepstrike.sessions.listing import ENDING, Unreadable, list_sessions, list_unreadable, take_order
from deepstrike.sessions.lock import SessionLock
from deepstrike.sessions.log_file import Known, mark_path, read_file, read_noted, require_own
from deepstrike.sessions.names import check_id, file_stem
from deepstrike.sessions.owned_file import OwnedFile, torn_files
from deepstrike.sessions.refusals import failed, live, not_the_owner, unknown_session
from deepstrike.sessions.verify import LogReport, report_on

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SMALL: Final = 1 << 18
"""A batch of at most so many bytes is handed to the operating system where the caller is."""
MAX_KNOWN: Final = 16
"""Of how many sessions at rest it is remembered where their frames end."""


@dataclass(slots=True, eq=False)
class _Held:
    """A session in the hands of an owner in this process."""

    owner: str
    lock: SessionLock
    file: OwnedFile
    lane: Lane = field(default_factory=Lane)


class FileSessionLog:
    """Keeps each session in a file of its own in the folder `dir`, which is made with the first session.

    `durability="os"`: an append has been handed to the operating system when it returns, so it outlives this process,
    killed or not. `"disk"`: it has been flushed to the disk as well, in a thread, so it outlives a power cut.

    While a run is live the session is locked (`flock`): a second owner in any process is refused, a crashed one's lock
    is free at once. Anybody may read meanwhile. A tail that an unfinished write has left is cut off when the session is
    next acquired, kept in a file `….torn-1` beside it and reported as a warning; damage anywhere else is `CorruptLog`,
    and the file is left as it is. Files are readable by their user alone. After a fork the child has no session: its
    parent's stay the parent's.

    A `~` at the start of `dir` is the user's folder.

    Raises `ConfigError` where `dir` is a file or no path or `durability` another word, `SessionError` with code
    `disk_full`, `log_io`, `no_lock` or `newer_format` where the file system refuses.
    """

    __slots__ = ("__weakref__", "_blobs", "_flushed", "_folder", "_guard", "_held", "_known", "_tokens")

    def __init__(self, dir: str | os.PathLike[str], *, durability: Durability = "os") -> None:  # noqa: A002
        self._folder = given_path("dir", dir)
        if self._folder.is_file():
            raise ConfigError(f"dir={os.fspath(dir)!r} is a file: name a folder, or use SqliteSessionLog for one file")
        self._flushed = flushes(durability)
        self._blobs = BlobFiles(self._folder / "blobs", flushed=self._flushed)
        self._guard = Lock()
        self._held: dict[str, _Held] = {}
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._tokens = count(1)
        _logs.add(self)

    def with_durability(self, durability: Durability) -> FileSessionLog:
        """The same folder, appended to with another durability from now on. Raises `ConfigError` for another word."""
        return FileSessionLog(self._folder, durability=durability)

    async def acquire(self, session_id: str) -> str:
        """See `SessionLog.acquire`. Raises `CorruptLog` where the session is damaged."""
        check_id(session_id)
        return await in_thread(partial(self._take, session_id), partial(self._give_back, session_id))

    async def release(self, session_id: str, owner: str) -> None:
        """See `SessionLog.release`.

        Cancelling it while an append is under way returns at once; the session is given back then.
        """
        held = self._held.get(session_id)
        if held is None or held.owner != owner:
            return
        give_back = partial(self._give_back, session_id, owner)
        if held.lane.enter():
            try:
                give_back()
            finally:
                held.lane.leave()
        else:
            try:
                await held.lane.run(give_back)
            except asyncio.CancelledError:
                held.lane.post(give_back)  # what has not begun is not done for an asker who has gone
                raise

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        """See `SessionLog.append`. An empty batch writes nothing and returns the last seq."""
        held = self._held.get(session_id)
        if held is None or held.owner != owner:
            raise not_the_owner(session_id, owner)
        if not self._flushed and held.file.known.ends and sum(map(len, records)) <= SMALL and held.lane.enter():
            try:
                return self._append(held, records, expected_seq)
            finally:
                held.lane.leave()
        return await held.lane.run(partial(self._append, held, tuple(records), expected_seq))

    async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
        """See `SessionLog.read`. A `from_seq` below 0 counts as 0. It waits for an append of this object."""
        check_id(session_id)
        held = self._held.get(session_id)
        if held is not None:
            await held.lane.passed()
        return await in_thread(partial(self._read, session_id, max(from_seq, 0)))

    async def latest_seq(self, session_id: str) -> int:
        """See `SessionLog.latest_seq`. Where another process holds the session, its file is read."""
        check_id(session_id)
        held = self._held.get(session_id)
        if held is None:
            return await in_thread(partial(self._latest, session_id))
        if held.lane.enter():
            try:
                return held.file.next_seq - 1
            finally:
                held.lane.leave()
        return await held.lane.run(lambda: held.file.next_seq - 1)

    async def sessions(self) -> list[str]:
        """See `SessionLog.sessions`. A session whose records are damaged is there, and reading it raises `CorruptLog`.

        A file whose head is damaged is left out, with a warning that names it: see `unreadable`.
        """
        return await in_thread(partial(list_sessions, self._folder))

    async def unreadable(self) -> list[Unreadable]:
        """The files of which it cannot be told whose session they hold, in order of their names."""
        return await in_thread(partial(list_unreadable, self._folder))

    async def delete(self, session_id: str) -> None:
        """See `SessionLog.delete`. If this is cut short it may be repeated; the records go last."""
        check_id(session_id)
        await in_thread(partial(self._delete, session_id))

    async def verify(self, session_id: str) -> LogReport:
        """Read the whole session and every blob that it names. Changes nothing. Raises `UnknownSession`."""
        check_id(session_id)
        path = self._path(session_id)
        aside = await in_thread(partial(torn_files, path))
        try:
            reading, damage = await in_thread(partial(read_noted, path, session_id, strict=True))
        except CorruptLog as error:
            return await report_on(self, session_id, [], aside=aside, damage=error.message)
        if reading is None:
            raise unknown_session(session_id)
        records, torn = reading.stretch.records, reading.stretch.torn
        told = None if damage is None else damage.message
        return await report_on(self, session_id, records, torn=torn, aside=aside, damage=told)

    async def intact(self, session_id: str) -> list[bytes]:
        """The records before any damage, all where there is none. Raises `UnknownSession`, or `CorruptLog` where the
        head is damaged.
        """
        check_id(session_id)
        reading = await in_thread(partial(read_file, self._path(session_id), session_id))
        if reading is None:
            raise unknown_session(session_id)
        return reading.stretch.records

    async def put_blob(self, session_id: str, data: bytes) -> str:
        """See `SessionLog.put_blob`. The same bytes are kept once in a session."""
        check_id(session_id)
        return await in_thread(partial(self._blobs.put, session_id, bytes(data)))

    async def get_blob(self, ref: str, offset: int = 0, length: int | None = None) -> bytes:
        """See `SessionLog.get_blob`. An `offset` or `length` below 0 counts as 0. Raises `CorruptLog` on damage, which
        is looked for where the whole is read.
        """
        return await in_thread(partial(self._blobs.get, ref, offset, length))

    # What follows blocks; it runs in threads of the lanes, or where it is short.

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{file_stem(session_id)}{ENDING}"

    def _lock(self, session_id: str) -> SessionLock:
        try:
            make_folder(self._folder, flushed=self._flushed)
        except OSError as error:
            raise failed("making the folder", self._folder, error) from error
        return SessionLock.take(self._path(session_id).with_suffix(".lock"), session_id)

    def _take(self, session_id: str) -> str:
        lock = self._lock(session_id)
        try:
            with self._guard:
                known = self._known.pop(session_id, None)
            order = partial(take_order, self._folder)
            path = self._path(session_id)
            file = OwnedFile.open(path, session_id, known, flushed=self._flushed, take_order=order)
        except BaseException:
            lock.release()
            raise
        with self._guard:
            held = self._held[session_id] = _Held(f"owner-{os.getpid()}-{next(self._tokens)}", lock, file)
            return held.owner

    def _give_back(self, session_id: str, owner: str) -> None:
        with self._guard:
            held = self._held.get(session_id)
            if held is None or held.owner != owner:
                return
            del self._held[session_id]
            self._known[session_id] = held.file.known
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        held.file.note()
        held.file.close()
        held.lock.release()

    def _append(self, held: _Held, records: Sequence[bytes], expected_seq: int) -> int:
        session_id = held.file.session_id
        if self._held.get(session_id) is not held:  # given back while this waited
            raise not_the_owner(session_id, held.owner)
        return held.file.append(records, expected_seq)

    def _where(self, session_id: str) -> Known | None:
        with self._guard:
            held = self._held.get(session_id)
            return self._known.get(session_id) if held is None else held.file.known

    def _read(self, session_id: str, from_seq: int) -> list[bytes]:
        path = self._path(session_id)
        known = self._where(session_id) if from_seq else None
        reading, damage = read_noted(path, session_id, known, from_seq)
        if damage is not None:
            raise damage
        if reading is None:
            return []
        return reading.stretch.records[from_seq - reading.first :]

    def _latest(self, session_id: str) -> int:
        known = self._where(session_id)
        reading, damage = read_noted(self._path(session_id), session_id, known, 0 if known is None else len(known.ends))
        if damage is not None:
            raise damage
        return -1 if reading is None else reading.next_seq - 1

    def _delete(self, session_id: str) -> None:
        if not self._folder.is_dir():
            raise unknown_session(session_id)
        try:
            lock = self._lock(session_id)
        except SessionBusy:
            raise live(session_id) from None
        try:
            self._remove(session_id)
        except OSError as error:
            raise failed("deleting", self._path(session_id), error) from error
        finally:
            lock.release()

    def _remove(self, session_id: str) -> None:
        path = self._path(session_id)
        require_own(path, session_id)
        torn = torn_files(path)
        there = self._blobs.remove(session_id) or bool(torn) or path.exists()
        if not there:
            raise unknown_session(session_id)
        # First what is noted of it: what is deleted is not missed, however this ends.
        for part in (mark_path(path), *torn, path):
            remove(part)
        if self._flushed:
            flush_folder(self._folder)
        with self._guard:
            self._known.pop(session_id, None)

    def _after_fork(self) -> None:
        """In a forked child: close the copies of the parent's files, whose locks stay the parent's."""
        for held in self._held.values():
            held.file.close()
            held.lock.drop()
        self._guard = Lock()
        self._held = {}
        self._known = OrderedDict()


_logs: WeakSet[FileSessionLog] = WeakSet()


def _leave_the_parents_sessions() -> None:
    for log in _logs:
        log._after_fork()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_the_parents_sessions)
