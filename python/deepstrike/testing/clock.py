"""A clock that stands still until the test moves it.

with ManualClock() as clock:
    task = asyncio.create_task(agent_under_test())
    await clock.until_asleep()
    await clock.advance(60)
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, suppress
from heapq import heappop, heappush
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from deepstrike.clock import Timer, use_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_PASSES = 20
"""How often the event loop turns between two timers, so that what one of them woke can run and schedule more."""


class ManualClock:
    """A `deepstrike.clock.Clock` whose time is moved by `advance` alone.

    `start_ms` is the first `now_ms()`, milliseconds since 1970. `with clock:` puts it in force for everything that is
    started inside the block. `now_ms` may be read from any thread, and without an event loop; timers and sleeps may
    belong to several loops, each is woken on its own.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = start_ms
        self._elapsed_us = 0
        self._set_off_ms = 0
        self._order = count()
        self._timers: list[_Timer] = []
        self._asleep = 0
        self._watchers: list[_Watcher] = []
        self._lock = Lock()
        self._installed: AbstractContextManager[None] | None = None

    def __enter__(self) -> ManualClock:
        if self._installed is not None:
            raise RuntimeError("this ManualClock is in force already; use one clock for each test")
        self._installed = use_clock(self)
        self._installed.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        installed, self._installed = self._installed, None
        if installed is not None:
            installed.__exit__(kind, error, trace)

    def now_ms(self) -> int:
        """Milliseconds since 1970: the start and what was advanced since."""
        return self._start_ms + self._elapsed_us // 1000

    def wall_ms(self) -> int:
        """What the machine's clock shows: `now_ms`, and what `set_wall` has put it off by."""
        return self.now_ms() + self._set_off_ms

    def set_wall(self, seconds: float) -> None:
        """Set the machine's clock this much forward, or back if it is below 0. Nothing that runs meanwhile is older."""
        self._set_off_ms += round(seconds * 1000)

    def alarm(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` in the task that moves the clock on by `delay` seconds."""
        with self._lock:
            due_us = self._elapsed_us + max(0, round(delay * 1_000_000))
            timer = _Timer(due_us, next(self._order), None, callback)
            heappush(self._timers, timer)
        return timer

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the running loop once the clock was moved on by `delay` seconds; at once when that is 0."""
        loop = asyncio.get_running_loop()
        if delay <= 0:
            return loop.call_soon(callback)
        with self._lock:
            timer = _Timer(self._elapsed_us + round(delay * 1_000_000), next(self._order), loop, callback)
            heappush(self._timers, timer)
        return timer

    async def sleep(self, delay: float) -> None:
        """Wait until the clock was moved on by `delay` seconds. Cancelling ends the wait at once."""
        if delay <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        timer = self.call_later(delay, lambda: None if woken.done() else woken.set_result(None))
        self._count_sleeper(1)
        try:
            await woken
        finally:
            timer.cancel()
            self._count_sleeper(-1)

    async def advance(self, seconds: float) -> None:
        """Move the clock on by `seconds`, running what becomes due on the way in order of time.

        Each timer sees the time it was set for. Between timers the running loop turns some twenty times, so tasks that
        were woken, and tasks just created, get to their next wait; what they schedule within `seconds` runs too.
        Timers of other loops are handed to them, not waited for.
        """
        with self._lock:
            target_us = self._elapsed_us + round(seconds * 1_000_000)
        await _let_the_loop_run()
        while (timer := self._next_due(target_us)) is not None:
            timer.fire()
            await _let_the_loop_run()
        with self._lock:
            self._elapsed_us = max(self._elapsed_us, target_us)

    async def until_asleep(self, sleepers: int = 1) -> None:
        """Wait until at least `sleepers` calls of `sleep` are waiting: then `advance` wakes somebody."""
        arrived = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._asleep >= sleepers:
                return
            self._watchers.append(_Watcher(sleepers, arrived))
        await arrived

    def _next_due(self, target_us: int) -> _Timer | None:
        with self._lock:
            while self._timers and self._timers[0].due_us <= target_us:
                timer = heappop(self._timers)
                if not timer.cancelled:
                    self._elapsed_us = max(self._elapsed_us, timer.due_us)
                    return timer
            return None

    def _count_sleeper(self, step: int) -> None:
        with self._lock:
            self._asleep += step
            reached = [watcher for watcher in self._watchers if watcher.sleepers <= self._asleep]
            self._watchers = [watcher for watcher in self._watchers if watcher.sleepers > self._asleep]
        for watcher in reached:
            watcher.tell()


class _Timer:
    """A scheduled call, ordered by time and then by when it was made."""

    __slots__ = ("callback", "cancelled", "due_us", "loop", "order")

    def __init__(
        self, due_us: int, order: int, loop: asyncio.AbstractEventLoop | None, callback: Callable[[], None]
    ) -> None:
        self.due_us = due_us
        self.order = order
        self.loop = loop
        self.callback = callback
        self.cancelled = False

    def __lt__(self, other: _Timer) -> bool:
        return (self.due_us, self.order) < (other.due_us, other.order)

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        if self.loop is not None:
            _on_loop(self.loop, lambda: None if self.cancelled else self.callback())
        elif not self.cancelled:
            self.callback()


class _Watcher:
    """Somebody who waits for a number of sleepers."""

    __slots__ = ("arrived", "sleepers")

    def __init__(self, sleepers: int, arrived: asyncio.Future[None]) -> None:
        self.sleepers = sleepers
        self.arrived = arrived

    def tell(self) -> None:
        _on_loop(self.arrived.get_loop(), lambda: None if self.arrived.done() else self.arrived.set_result(None))


def _on_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
        loop.call_soon_threadsafe(callback)


async def _let_the_loop_run() -> None:
    for _ in range(_PASSES):
        await asyncio.sleep(0)
