"""Deleting a session from a SQLite file, so that nothing of it is left there."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from deepstrike.errors import SessionBusy
from deepstrike.sessions import rows
from deepstrike.sessions.blob import blob_shelf
from deepstrike.sessions.lane import in_thread
from deepstrike.sessions.lock import SessionLock
from deepstrike.sessions.refusals import live, still_read, unknown_session

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from deepstrike.sessions.database import Database
    from deepstrike.sessions.marks import Marks

ERASE_TRIES: Final = 40
"""How often it is tried to cut the write-ahead log after a deletion, while somebody reads."""
ERASE_SECONDS: Final = 0.25
"""How long the next try waits; other sessions are appended to meanwhile."""


class Erasing:
    """Deletes sessions through the connection that writes. `_unerased` are those whose bytes may still be there."""

    __slots__ = ("_marks", "_path", "_unerased", "_writer")

    def __init__(self, path: Path, writer: Database, marks: Marks) -> None:
        self._path = path
        self._writer = writer
        self._marks = marks
        self._unerased: set[str] = set()

    async def delete(self, session_id: str) -> None:
        """See `SqliteSessionLog.delete`."""
        lock = await in_thread(partial(self._lock, session_id), SessionLock.release)
        try:
            await self._writer.run(partial(self._remove, session_id))
        except asyncio.CancelledError:
            self._writer.lane.post(lock.release)  # nobody may begin on a session that is being removed
            raise
        except BaseException:
            lock.release()
            raise
        lock.release()
        await self._writer.run(self._rewrite)
        for _ in range(ERASE_TRIES):
            if await self._writer.run(self._erase):
                return
            await asyncio.sleep(ERASE_SECONDS)
        raise still_read(session_id, self._path)

    # What follows blocks; it runs in threads.

    def _lock(self, session_id: str) -> SessionLock:
        if not self._path.exists():
            raise unknown_session(session_id)
        try:
            return self._marks.lock(session_id)
        except SessionBusy:
            raise live(session_id) from None

    def _remove(self, session_id: str, connection: sqlite3.Connection) -> None:
        # First what is noted: what is deleted is not missed, however this ends.
        noted = self._marks.of(session_id)
        self._marks.forget(session_id)
        there = rows.remove(connection, session_id, blob_shelf(session_id)) or (
            noted is not None and noted.next_seq > 0
        )
        if not there and session_id not in self._unerased:
            raise unknown_session(session_id)
        self._unerased.add(session_id)

    def _rewrite(self, connection: sqlite3.Connection) -> None:
        self._writer.rewrite(connection, live=self._marks.any_locked())

    def _erase(self, connection: sqlite3.Connection) -> bool:
        erased = self._writer.erase(connection)
        if erased:
            self._unerased.clear()
        return erased
