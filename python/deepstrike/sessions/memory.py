"""A session log that lives as long as the object that holds it."""

from __future__ import annotations

import os
from array import array
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from deepstrike.sessions.blob import blob_ref, blob_shelf, shelf_of
from deepstrike.sessions.frame import seal_batch, seed, verify
from deepstrike.sessions.names import check_id
from deepstrike.sessions.refusals import (
    busy,
    damaged,
    live,
    not_the_owner,
    other_seq,
    unknown_blob,
    unknown_session,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Kept:
    """The records of a session, and beside them their seals."""

    __slots__ = ("records", "seals", "start")

    def __init__(self, session_id: str) -> None:
        self.start = seed(session_id)
        self.records: list[bytes] = []
        self.seals = array("Q")

    def chain(self, seq: int) -> int:
        """The checksum in front of record `seq`."""
        return self.seals[seq - 1] & 0xFFFF_FFFF if seq else self.start

    def append(self, records: Sequence[bytes]) -> None:
        # Seals first: readers go by the records, and one `+=` shows them the whole batch or nothing of it.
        self.seals.extend(seal_batch(records, self.chain(len(self.records))))
        self.records += records

    def after_fork(self) -> None:
        """Another thread may have been between the seals and the records."""
        del self.seals[len(self.records) :]


class InMemorySessionLog:
    """The whole `SessionLog` protocol in memory: safe over threads and event loops, gone with the process.

    No method waits for anything, so cancelling never splits one. After a fork the child has a copy of its own in which
    nobody holds a session.
    """

    __slots__ = ("__weakref__", "_blobs", "_kept", "_lock", "_owners", "_tokens")

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._blobs: dict[str, dict[str, bytes]] = {}
        self._owners: dict[str, str] = {}
        self._tokens = count(1)
        self._lock = Lock()
        _logs.add(self)

    def __contains__(self, session_id: object) -> bool:
        """Whether there is such a session."""
        return isinstance(session_id, str) and session_id in self._kept

    async def acquire(self, session_id: str) -> str:
        """See `SessionLog.acquire`."""
        check_id(session_id)
        with self._lock:
            if session_id in self._owners:
                raise busy(session_id)
            owner = self._owners[session_id] = f"owner-{next(self._tokens)}"
            return owner

    async def release(self, session_id: str, owner: str) -> None:
        """See `SessionLog.release`."""
        with self._lock:
            if self._owners.get(session_id) == owner:
                del self._owners[session_id]

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        """See `SessionLog.append`. An empty batch writes nothing and returns the last seq."""
        with self._lock:
            if self._owners.get(session_id) != owner:
                raise not_the_owner(session_id, owner)
            kept = self._kept.get(session_id)
            length = 0 if kept is None else len(kept.records)
            if length != expected_seq:
                raise other_seq(session_id, expected_seq, length)
            if kept is None:
                kept = _Kept(session_id)
            if records:
                kept.append(records)
                self._kept[session_id] = kept
            return len(kept.records) - 1

    async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
        """See `SessionLog.read`. A `from_seq` below 0 counts as 0."""
        check_id(session_id)
        first = max(from_seq, 0)
        with self._lock:
            kept = self._kept.get(session_id)
            if kept is None or first >= len(kept.records):
                return []
            records, seals, before = kept.records[first:], kept.seals[first:], kept.chain(first)
        damage = verify(records, seals, before)
        if damage is not None:
            raise damaged(session_id, first + damage.index, damage.reason)
        return records

    async def latest_seq(self, session_id: str) -> int:
        """See `SessionLog.latest_seq`."""
        check_id(session_id)
        kept = self._kept.get(session_id)
        return -1 if kept is None else len(kept.records) - 1

    async def sessions(self) -> list[str]:
        """See `SessionLog.sessions`."""
        with self._lock:
            return list(self._kept)

    async def delete(self, session_id: str) -> None:
        """See `SessionLog.delete`."""
        check_id(session_id)
        with self._lock:
            if session_id in self._owners:
                raise live(session_id)
            kept = self._kept.pop(session_id, None)
            blobs = self._blobs.pop(blob_shelf(session_id), None)
        if kept is None and blobs is None:
            raise unknown_session(session_id)

    async def put_blob(self, session_id: str, data: bytes) -> str:
        """See `SessionLog.put_blob`. The same bytes are kept once in a session."""
        check_id(session_id)
        shelf = blob_shelf(session_id)
        ref = blob_ref(shelf, data)
        with self._lock:
            self._blobs.setdefault(shelf, {}).setdefault(ref, bytes(data))
        return ref

    async def get_blob(self, ref: str, offset: int = 0, length: int | None = None) -> bytes:
        """See `SessionLog.get_blob`. An `offset` or `length` below 0 counts as 0."""
        with self._lock:
            data = self._blobs.get(shelf_of(ref), {}).get(ref)
        if data is None:
            raise unknown_blob(ref)
        start = max(offset, 0)
        return data[start:] if length is None else data[start : start + max(length, 0)]

    def _after_fork(self) -> None:
        # Another thread may have held the lock, and no run of the parent goes on here.
        self._lock = Lock()
        self._owners = {}
        for kept in self._kept.values():
            kept.after_fork()


_logs: WeakSet[InMemorySessionLog] = WeakSet()


def _give_each_log_its_own_lock() -> None:
    for log in _logs:
        log._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_each_log_its_own_lock)
