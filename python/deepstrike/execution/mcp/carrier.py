"""What carries messages between us and a server, whatever it is made of."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.client._transport import TransportStreams

    from deepstrike.execution.mcp.faults import Broken

LARGEST_MESSAGE: Final = 16 * 1024 * 1024
"""Bytes of one message from a server."""


class Carrier(AbstractAsyncContextManager["TransportStreams"], Protocol):
    """Entered and left in one task. Entering starts or prepares the connection; leaving ends all of it."""

    @property
    def over(self) -> str | None:
        """Why nothing comes any more; None while something may."""

    def watch(self, ended: Callable[[], None]) -> None:
        """Have `ended` called once when the connection is over."""

    def account(self) -> str:
        """Why it is over, or what was seen that may tell; with the server's last words. Holds no secret."""

    def broken(self, message: str, data: object) -> Broken | None:
        """What an error of the protocol says that is ours, where one request failed alone; None for a server's own."""

    def silent_since(self, mark: int) -> bool:
        """Whether nothing has come since `mark()` gave this number that shows that the server reads what it is sent;
        false where that cannot be known."""

    def mark(self) -> int:
        """How many messages have come that show it."""

    def forget(self, number: int | str) -> None:
        """Nobody waits any more for the answer to our request with this number."""
