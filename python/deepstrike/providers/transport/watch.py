"""Notices a call that has stopped moving, with one timer for the whole call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import Stalled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from deepstrike.clock import Clock, Timer
    from deepstrike.providers.transport.base import Timeouts


class Watch:
    """Keeps the limits `first_event`, `idle` and `progress` of one try.

    The timer is not moved when something arrives: when it fires it looks at what has arrived and is set anew for what
    is left. `interrupt` is called once, on the loop, when a limit is passed; `fault` then says which.
    """

    __slots__ = (
        "_answering",
        "_byte_at",
        "_clock",
        "_event_at",
        "_interrupt",
        "_limits",
        "_paused_at",
        "_timer",
        "fault",
    )

    def __init__(self, limits: Timeouts, clock: Clock, interrupt: Callable[[], None]) -> None:
        self._limits = limits
        self._clock = clock
        self._interrupt = interrupt
        self._answering = False
        self._byte_at = self._event_at = clock.now_ms()
        self._paused_at: int | None = None
        self._timer: Timer | None = None
        self.fault: Stalled | None = None
        # The shortest limit of all, so that the first event need not move the timer.
        self._arm(limit for limit in (limits.first_event, limits.idle, limits.progress) if limit is not None)

    def interrupt_by(self, interrupt: Callable[[], None]) -> None:
        """Call this one from now on."""
        self._interrupt = interrupt

    def heard(self, events: bool) -> None:
        """Bytes have arrived, and `events` among them or not. The limits stand still until `wait`."""
        now = self._clock.now_ms()
        self._byte_at = self._paused_at = now
        if events:
            self._event_at = now
            self._answering = True

    def wait(self) -> None:
        """The next bytes are awaited now. What the consumer took its time for does not count against the service."""
        if self._paused_at is not None:
            pause = self._clock.now_ms() - self._paused_at
            self._paused_at = None
            if pause:
                self._byte_at += pause
                self._event_at += pause

    def stop(self) -> None:
        """Forget the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delays: Iterable[float]) -> None:
        delay = min(delays, default=None)
        if delay is not None:
            self._timer = self._clock.call_later(max(delay, 0.001), self._look)

    def _left(self) -> list[tuple[str, float]]:
        """Each limit in force, with the seconds that are left of it."""
        limits = self._limits
        now = self._clock.now_ms() if self._paused_at is None else self._paused_at
        first = ("progress", limits.progress) if self._answering else ("first_event", limits.first_event)
        found = []
        for name, limit, since in ((*first, self._event_at), ("idle", limits.idle, self._byte_at)):
            if limit is not None and (name != "idle" or self._answering):
                found.append((name, limit - (now - since) / 1000))
        return found

    def _look(self) -> None:
        self._timer = None
        left = self._left()
        passed = next((name for name, seconds in left if seconds <= 0), None)
        if passed is None:
            self._arm(seconds for _, seconds in left)
            return
        self.fault = Stalled(_MESSAGES[passed].format(getattr(self._limits, passed)))
        self._interrupt()


_MESSAGES = {
    "first_event": "the service sent no event within {:g} s of the request; ask again, or raise Timeouts.first_event",
    "idle": "the service sent nothing at all for {:g} s in mid-answer; ask again, or raise Timeouts.idle",
    "progress": "the answer made no progress for {:g} s on a live connection; ask again, or raise Timeouts.progress",
}
