"""The calls in flight on one loop: their time, and what there is to say of them beside their results."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from deepstrike.clock import current_clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.clock import Timer

T = TypeVar("T")


class Expired(Exception):
    """A call took longer than it may."""


class Flight:
    """One call. `notes` are shown behind its result."""

    __slots__ = ("_clock", "_left", "_over", "_since", "_timer", "notes")

    def __init__(self, seconds: float) -> None:
        self._clock = current_clock()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = seconds
        self._since = 0
        self._timer: Timer | None = None
        self.notes: list[str] = []

    async def watch(self, work: Awaitable[T]) -> T:
        """What `work` gives, the time running. Raises `Expired` once it is over; then, and when cancelled, `work` is
        cancelled."""
        self.go()
        task = asyncio.ensure_future(work)
        self._over.add_done_callback(lambda _: task.cancel())
        try:
            await asyncio.wait({task})
            if self._over.done() and task.cancelled():
                raise Expired
            return task.result()
        finally:
            task.cancel()
            self.hold()

    @property
    def runs(self) -> bool:
        """Whether its time runs."""
        return self._timer is not None

    def hold(self) -> None:
        """Its time stands still."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left = max(0.0, self._left - (self._clock.now_ms() - self._since) / 1000)

    def go(self) -> None:
        """Its time runs on."""
        if self._timer is None:
            self._since = self._clock.now_ms()
            self._timer = self._clock.call_later(self._left, self._expire)

    def _expire(self) -> None:
        if not self._over.done():
            self._over.set_result(None)


class Flights:
    """All of them."""

    __slots__ = ("_flying",)

    def __init__(self) -> None:
        self._flying: set[Flight] = set()

    def __len__(self) -> int:
        return len(self._flying)

    def begin(self, seconds: float) -> Flight:
        """A call that may take so long."""
        flight = Flight(seconds)
        self._flying.add(flight)
        return flight

    def end(self, flight: Flight) -> None:
        """The call is over."""
        self._flying.discard(flight)
        flight.hold()

    def note(self, text: str) -> None:
        """To be shown with the results of all calls in flight: a server does not always say which of them asks."""
        for flight in self._flying:
            flight.notes.append(text)

    async def apart(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` gives; its time counts for no call. One at a time."""
        held = [flight for flight in self._flying if flight.runs]
        for flight in held:
            flight.hold()
        try:
            return await ask()
        finally:
            for flight in held:
                if flight in self._flying:
                    flight.go()
