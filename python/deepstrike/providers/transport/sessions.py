"""The process's HTTP sessions, one for each event loop and origin, shared by all who ask there.

Nobody's own: a provider may be made for every request, be dropped without a word, and its successors still find the
connections open. Idle connections end by the keep-alive limit, a session with its loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import aiohttp

    _Key = tuple[asyncio.AbstractEventLoop, str]


@dataclass(slots=True)
class _Place:
    """A session, who uses it, and when it was last asked for (by its loop's clock)."""

    loop: asyncio.AbstractEventLoop
    keeper: AsyncGenerator[aiohttp.ClientSession, None]
    session: aiohttp.ClientSession
    users: weakref.WeakSet[object] = field(default_factory=weakref.WeakSet)
    asked_at: float = 0.0


class SharedSessions:
    """Sessions by loop and origin. Safe for several threads; a forked process begins with none.

    A session whose users are all gone is closed when another is opened `idle` seconds later or more.
    """

    def __init__(self, make: Callable[[], aiohttp.ClientSession], idle: float) -> None:
        self._make = make
        self._idle = idle
        self._parents: list[dict[_Key, _Place]] = []
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)

    async def get(self, origin: str, user: object) -> aiohttp.ClientSession:
        """The running loop's session for `origin`, made on first use; `user` counts as using it from now on."""
        loop = asyncio.get_running_loop()
        place = self._places.get((loop, origin))
        if place is None or place.session.closed:
            place = await self._open(loop, origin)
        if user not in place.users:
            place.users.add(user)
        place.asked_at = loop.time()
        return place.session

    async def release(self, user: object) -> None:
        """`user` is done on the running loop: sessions that nobody else uses there are closed."""
        loop = asyncio.get_running_loop()
        with self._lock:
            used = [(key, it) for key, it in self._places.items() if it.loop is loop and user in it.users]
            for key, place in used:
                place.users.discard(user)
                if not place.users:
                    del self._places[key]
        for _, place in used:
            if not place.users:
                await _close(place)

    async def _open(self, loop: asyncio.AbstractEventLoop, origin: str) -> _Place:
        keeper = self._keep(key := (loop, origin), self._make())
        place = _Place(loop, keeper, await anext(keeper), asked_at=loop.time())  # nothing is waited for here
        with self._lock:
            left = self._take_left(loop)
            self._places[key] = place
        for other in left:
            await _close(other)
        return place

    async def _keep(self, key: _Key, session: aiohttp.ClientSession) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Holds a session in an async generator: a loop finishes those before it closes (`shutdown_asyncgens`)."""
        try:
            yield session
        finally:
            with self._lock:
                if (place := self._places.get(key)) is not None and place.session is session:
                    del self._places[key]
            await session.close()

    def _take_left(self, running: asyncio.AbstractEventLoop) -> list[_Place]:
        """Take out what can serve nobody: sessions of closed loops, and those of this loop that were left alone."""
        since = running.time() - self._idle
        left = {
            key: place
            for key, place in self._places.items()
            if place.session.closed
            or place.loop.is_closed()
            or (place.loop is running and not place.users and place.asked_at <= since)
        }
        for key in left:
            del self._places[key]
        return list(left.values())

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[_Key, _Place] = {}

    def _begin_in_child(self) -> None:
        """The sessions of the parent stay untouched: to close them here would end connections that it still uses."""
        self._parents.append(self._places)
        self._begin()


async def _close(place: _Place) -> None:
    # The generator of a closed loop cannot be finished any more; its session needs nothing of the loop.
    await (place.session.close() if place.loop.is_closed() else place.keeper.aclose())
