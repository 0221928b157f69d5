"""What happened while the drive loop was elsewhere."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.wire.input import Input


class Inbox:
    """A queue with one reader. `push` belongs to the loop's thread, `push_from_anywhere` to any."""

    __slots__ = ("_items", "_loop", "_reader")

    def __init__(self) -> None:
        self._items: deque[Input] = deque()
        self._loop = asyncio.get_running_loop()
        self._reader: asyncio.Future[None] | None = None

    def push(self, item: Input) -> None:
        """Add an item and wake the reader."""
        self._items.append(item)
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def push_from_anywhere(self, item: Input) -> None:
        """As `push`, from any thread. Does nothing when the loop is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.push, item)

    async def take(self) -> Input:
        """Wait for the next item. Cancelling loses none."""
        while not self._items:
            self._reader = self._loop.create_future()
            await self._reader
        return self._items.popleft()

    def poll(self) -> Input | None:
        """The next item if one is there."""
        return self._items.popleft() if self._items else None
