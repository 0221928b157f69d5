"""Asynchronous work for callers who cannot await it, also where an event loop already runs in their thread."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_GRACE_SECONDS: Final = 2.0
"""How long a caller who has everything waits for the loop that gave it; a task that never ends is left behind."""


class Stream(Protocol[T_co]):
    """An asynchronous iterator that can be closed early."""

    async def __anext__(self) -> T_co:
        """The next item. Raises `StopAsyncIteration` at the end."""

    async def aclose(self) -> None:
        """End what makes the items, and wait for it."""


def block_on(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run `work()` to its end on an event loop of its own: here, or in a thread where a loop already runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    box: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            box.append(asyncio.run(work()))
        except BaseException as error:
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name="deepstrike-run-sync", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return box[0]


def iterate_on(stream: Callable[[], Stream[T]]) -> Generator[T, None, None]:
    """The items of `stream()`, which lives on an event loop of its own, in a thread; nothing starts before the first.

    Closing the generator, dropping it, or an exception in the caller's loop (Ctrl-C too) closes the stream and waits
    until it has let go. What makes the items sees the context variables of who asks for one.
    """
    items = stream()
    loop = _Loop()
    try:
        while True:
            try:
                item = loop.call(items.__anext__())
            except StopAsyncIteration:
                return
            yield item
    finally:
        if loop.can_be_waited_for:
            loop.call(items.aclose())
        loop.end()


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._stay(ready),), name="deepstrike-stream-sync", daemon=True
        )
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._thread.start()
        ready.wait()

    @property
    def can_be_waited_for(self) -> bool:
        """False where waiting would never end: in the thread itself (the collector may run there), or at exit."""
        return threading.current_thread() is not self._thread and not sys.is_finalizing()

    def call(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` there and wait for it here. Raises what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def end(self) -> None:
        """Let the loop end, and wait a little for that."""
        self._loop.call_soon_threadsafe(self._over.set)
        if self.can_be_waited_for:
            self._thread.join(_GRACE_SECONDS)

    async def _stay(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        ready.set()
        await self._over.wait()
