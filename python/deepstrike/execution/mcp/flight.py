"""The calls in flight on one loop: their time, and what there is to say of them beside their results."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from deepstrike.clock import current_clock
from deepstrike.execution.base import misplaced
from deepstrike.tools.suspension import Parked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.clock import Timer

    Suspend = Callable[[object], Awaitable[object]]

T = TypeVar("T")

MOST_QUESTIONS: Final = 32
"""That a server may put during one call, or between two."""


class Expired(Exception):
    """A call took longer than it may."""


class Flight:
    """One call. `notes` are shown behind its result; `suspend` puts a question of the server's on its behalf."""

    __slots__ = ("_clock", "_left", "_over", "_parked", "_since", "_suspend", "_timer", "notes")

    def __init__(self, seconds: float, suspend: Suspend = misplaced) -> None:
        self._suspend = suspend
        self._parked: Parked | None = None
        self._clock = current_clock()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = seconds
        self._since = 0
        self._timer: Timer | None = None
        self.notes: list[str] = []

    async def watch(self, work: Awaitable[T]) -> T:
        """What `work` gives, the time running. Raises `Expired` once it is over, and `Parked` where the call is closed
        at a question; then, and when cancelled, `work` is cancelled."""
        self.go()
        task = asyncio.ensure_future(work)
        self._over.add_done_callback(lambda _: task.cancel())
        try:
            await asyncio.wait({task})
            if self._over.done() and task.cancelled():
                raise Expired if self._parked is None else self._parked
            return task.result()
        finally:
            task.cancel()
            self.hold()

    async def suspend(self, payload: object) -> object:
        """The answer to a question; the call's end ends the asking, and a question that must wait ends the call.

        Raises `Misplaced` where nobody can be asked, `CancelledError` where the call has ended.
        """
        asking = asyncio.ensure_future(self._suspend(payload))
        self._over.add_done_callback(lambda _: asking.cancel())
        try:
            await asyncio.wait({asking})
        except asyncio.CancelledError:
            asking.cancel()
            raise
        error = None if asking.cancelled() else asking.exception()
        if isinstance(error, Parked):
            self._parked = error
            self._expire()
            raise asyncio.CancelledError
        return asking.result()

    def over(self) -> None:
        """The call has ended, in whatever way."""
        self.hold()
        self._expire()

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

    __slots__ = ("_asked", "_flying")

    def __init__(self) -> None:
        self._flying: set[Flight] = set()
        self._asked: Counter[Flight | None] = Counter()

    def __len__(self) -> int:
        return len(self._flying)

    def begin(self, seconds: float, suspend: Suspend = misplaced) -> Flight:
        """A call that may take so long."""
        flight = Flight(seconds, suspend)
        self._flying.add(flight)
        del self._asked[None]
        return flight

    def end(self, flight: Flight) -> None:
        """The call is over."""
        self._flying.discard(flight)
        del self._asked[flight]
        flight.over()

    def only(self) -> Flight | None:
        """The one call in flight; None where there are several, of which any may be the one that is meant."""
        return next(iter(self._flying)) if len(self._flying) == 1 else None

    def note(self, text: str) -> None:
        """To be shown with the results of all calls in flight: a server does not always say which of them asks."""
        for flight in self._flying:
            if text not in flight.notes:
                flight.notes.append(text)

    def admit(self) -> bool:
        """Whether a question more may be put. It counts for every call in flight, as any may be the one that asks."""
        asking: set[Flight] | set[None] = self._flying or {None}
        admitted = any(self._asked[each] < MOST_QUESTIONS for each in asking)
        self._asked.update(asking)
        return admitted

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
