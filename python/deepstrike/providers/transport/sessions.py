"""One HTTP session for each event loop and process, closed with its loop."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import aiohttp


@dataclass(frozen=True, slots=True)
class _Entry:
    loop: weakref.ref[asyncio.AbstractEventLoop]
    keeper: AsyncGenerator[aiohttp.ClientSession, None]
    session: aiohttp.ClientSession

    def serves(self, loop: asyncio.AbstractEventLoop) -> bool:
        return self.loop() is loop and not self.session.closed

    def gone(self) -> bool:
        loop = self.loop()
        return self.session.closed or loop is None or loop.is_closed()


async def _keep(session: aiohttp.ClientSession) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """Holds a session in an async generator: a loop finishes its generators before it closes (`shutdown_asyncgens`)."""
    try:
        yield session
    finally:
        await session.close()


class LoopSessions:
    """The sessions of one endpoint. Safe for several threads; sessions of a parent process are never touched."""

    def __init__(self, make: Callable[[], aiohttp.ClientSession]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._entries: dict[tuple[int, int], _Entry] = {}

    async def get(self) -> aiohttp.ClientSession:
        """The session of the running loop, made on first use."""
        loop = asyncio.get_running_loop()
        key = (os.getpid(), id(loop))
        entry = self._entries.get(key)
        if entry is not None and entry.serves(loop):
            return entry.session
        keeper = _keep(self._make())
        session = await anext(keeper)
        with self._lock:
            self._forget_gone(key[0])
            self._entries[key] = _Entry(weakref.ref(loop), keeper, session)
        return session

    async def aclose(self) -> None:
        """Close the running loop's session, if there is one."""
        with self._lock:
            entry = self._entries.pop((os.getpid(), id(asyncio.get_running_loop())), None)
        if entry is not None:
            await entry.keeper.aclose()

    def _forget_gone(self, pid: int) -> None:
        for key in [key for key, entry in self._entries.items() if key[0] == pid and entry.gone()]:
            del self._entries[key]
