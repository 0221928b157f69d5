"""The time that one tool call may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.clock import current_clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.clock import Timer

    Ask = Callable[[object], Awaitable[object]]


class Allowance:
    """Calls `expire` after `seconds` (None: never), not counting those in which the tool waits for an answer."""

    __slots__ = ("_clock", "_expire", "_left", "_since", "_timer")

    def __init__(self, seconds: float | None, expire: Callable[[], None]) -> None:
        """The time begins to run."""
        self._clock = current_clock()
        self._expire = expire
        self._left = seconds
        self._since = 0
        self._timer: Timer | None = None
        self._run()

    def stop(self) -> None:
        """No more time passes."""
        if self._timer is not None and self._left is not None:
            self._timer.cancel()
            self._timer = None
            self._left = max(0.0, self._left - (self._clock.now_ms() - self._since) / 1000)

    def apart(self, ask: Ask) -> Ask:
        """`ask` with the time standing still meanwhile."""

        async def wait(payload: object) -> object:
            self.stop()
            answer = await ask(payload)
            self._run()
            return answer

        return wait

    def _run(self) -> None:
        if self._left is not None:
            self._since = self._clock.now_ms()
            self._timer = self._clock.call_later(self._left, self._expire)
