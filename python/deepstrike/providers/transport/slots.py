"""A limit on calls in flight that holds over loops and threads (an `asyncio.Semaphore` belongs to one loop)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque


class _Place:
    """One waiting call. `granted` is written under the lock of its `Slots`."""

    __slots__ = ("future", "granted", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.granted = False


class Slots:
    """At most `limit` holders at a time, first come, first served. A forked process begins with all of them free."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reset()

    async def acquire(self) -> None:
        """Wait for a slot. Cancelled, it takes none."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            if self._held < self._limit:
                self._held += 1
                return
            place = _Place()
            self._queue.append(place)
        try:
            await place.future
        except asyncio.CancelledError:
            self._withdraw(place)
            raise

    def release(self) -> None:
        """Hand the slot to the longest waiting call, or free it."""
        with self._lock:
            while self._queue:
                place = self._queue.popleft()
                place.granted = True
                try:
                    place.loop.call_soon_threadsafe(_wake, place.future)
                except RuntimeError:  # its loop is closed: nobody waits there any more
                    continue
                return
            self._held -= 1

    def _withdraw(self, place: _Place) -> None:
        with self._lock:
            granted = place.granted
            if not granted:
                self._queue.remove(place)
        if granted:
            self.release()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._held = 0
        self._queue: deque[_Place] = deque()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


DEFAULT_LIMIT = 100
"""Calls in flight to one endpoint where the user sets no limit: what HTTP clients commonly allow themselves, and few
enough that a burst of agents queues here instead of being refused there."""

_MOST_SHARED = 1024
_shared: dict[tuple[str, int], Slots] = {}
_shared_lock = threading.Lock()


def shared_slots(base_url: str, limit: int | None = None) -> Slots:
    """The process's slots of an endpoint with this limit, `DEFAULT_LIMIT` for None."""
    key = (base_url, DEFAULT_LIMIT if limit is None else limit)
    with _shared_lock:
        slots = _shared.get(key)
        if slots is None:
            if len(_shared) >= _MOST_SHARED:
                _shared.pop(next(iter(_shared)))
            slots = _shared[key] = Slots(key[1])
        return slots
