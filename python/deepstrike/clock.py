"""The clock of a run: wall time at process start plus what has elapsed since, so it never goes back.

Only the drive loop and the transport read it. Tests put another one in place with `use_clock`
(`deepstrike.testing.ManualClock` does), for everything that is started inside the `with` block.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Forget the call. Cancelling twice, or after it ran, does nothing."""


class Clock(Protocol):
    """What a run needs of time. All durations are seconds, `now_ms` is milliseconds since 1970."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; never decreases."""

    def wall_ms(self) -> int:
        """What the machine's clock shows now, milliseconds since 1970. It jumps when it is set."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the running loop after `delay` seconds."""

    def alarm(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` after `delay` seconds in a thread of its own: where there is no loop."""

    async def sleep(self, delay: float) -> None:
        """Wait `delay` seconds. Cancelling it ends the wait at once."""


_WALL_AT_START = time.time() - time.monotonic()


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return int((_WALL_AT_START + time.monotonic()) * 1000)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    def wall_ms(self) -> int:
        return int(time.time() * 1000)

    def alarm(self, delay: float, callback: Callable[[], None]) -> Timer:
        timer = threading.Timer(max(0.0, delay), callback)
        timer.name, timer.daemon = "deepstrike-alarm", True
        timer.start()
        return timer

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(delay)


class AheadClock:
    """Another clock, `ahead_ms` milliseconds ahead of it: `now_ms` is, all else is that clock's."""

    def __init__(self, clock: Clock, ahead_ms: int) -> None:
        self._clock = clock
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._ahead_ms

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._clock.call_later(delay, callback)

    def alarm(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._clock.alarm(delay, callback)

    async def sleep(self, delay: float) -> None:
        await self._clock.sleep(delay)


def not_before(clock: Clock, moment_ms: int) -> Clock:
    """`clock`, or one that goes on from `moment_ms` as it does, where it shows an earlier time now."""
    behind = moment_ms - clock.now_ms()
    return clock if behind <= 0 else AheadClock(clock, behind)


_SYSTEM = SystemClock()
_current: ContextVar[Clock] = ContextVar("deepstrike_clock")


def current_clock() -> Clock:
    """The clock in force here: the system's, unless `use_clock` put another in place."""
    return _current.get(_SYSTEM)


@contextmanager
def use_clock(clock: Clock) -> Iterator[None]:
    """Put `clock` in force for everything started inside the block."""
    token = _current.set(clock)
    try:
        yield
    finally:
        _current.reset(token)
