"""One dream of an agent's at a time in this process, over all tasks, threads and loops."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from deepstrike.providers.transport.slots import Slots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class _Place:
    """Where the dreams of one agent in one store queue; it is there while one is under way or waits."""

    __slots__ = ("one", "users")

    def __init__(self) -> None:
        self.one = Slots(1)
        self.users = 0


_lock = threading.Lock()
_places: dict[tuple[int, str], _Place] = {}


@asynccontextmanager
async def alone(store: object, agent_id: str) -> AsyncIterator[None]:
    """Wait until no other dream of the agent in this store is under way, and keep others waiting for the block."""
    key = id(store), agent_id
    with _lock:
        place = _places.setdefault(key, _Place())
        place.users += 1
    try:
        await place.one.acquire()
        try:
            yield
        finally:
            place.one.release()
    finally:
        with _lock:
            place.users -= 1
            if not place.users:
                _places.pop(key, None)


def _after_fork_in_child() -> None:
    """Dreams of the parent are not under way here."""
    global _lock
    _lock = threading.Lock()
    _places.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)
