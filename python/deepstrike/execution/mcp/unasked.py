"""What a server sends though nothing is asked of it: reading that takes time, whatever becomes of it, and no end."""

from __future__ import annotations

from typing import Final

from mcp.shared.dispatcher import coerce_request_id

from deepstrike.clock import current_clock

AT_ONCE: Final = 16 * 1024 * 1024
"""Bytes that a server may send unasked."""
A_SECOND: Final = 256 * 1024
"""So many more it may send each second."""
LINE: Final = 1024
"""A line counts for so many bytes more, since short ones take as long."""
LISTEN: Final = "subscriptions/listen"
"""Asks for whatever happens: what it brings counts as unasked."""
TOO_MUCH: Final = "it goes on sending, though nothing is asked of it"


class Unasked:
    """How much more of it there may be: whatever there is while something is asked, which has a time of its own."""

    __slots__ = ("_asked", "_clock", "_left", "_since")

    def __init__(self) -> None:
        self._asked: set[int | str] = set()
        self._clock = current_clock()
        self._since = self._clock.now_ms()
        self._left = float(AT_ONCE)

    def ask(self, number: int | str) -> None:
        """A request with this number is sent."""
        self._asked.add(coerce_request_id(number))

    def settle(self, number: int | str) -> None:
        """It is answered, or nobody waits for its answer any more."""
        self._asked.discard(coerce_request_id(number))

    def take(self, chunk: bytes) -> bool:
        """Whether there may be these bytes."""
        return self.pay(len(chunk) + LINE * chunk.count(b"\n"))

    def pay(self, size: int) -> bool:
        """Whether there may be what takes as long as so many bytes."""
        now = self._clock.now_ms()
        if self._asked:
            self._left = AT_ONCE
        else:
            self._left = min(AT_ONCE, self._left + A_SECOND * (now - self._since) / 1000) - size
        self._since = now
        return self._left >= 0
