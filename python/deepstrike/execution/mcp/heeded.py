"""Signs that a server reads what it is sent, as opposed to whatever else it says: a deaf one may go on talking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

MOST_OPEN: Final = 4096
"""Requests that are remembered until they are answered."""

_PROGRESS: Final = "notifications/progress"


class Heeded:
    """How often there was one: an answer to a request, late ones too, or progress of one that somebody waits for."""

    __slots__ = ("_open", "times")

    def __init__(self) -> None:
        self._open: dict[int | str, bool] = {}  # with whether somebody waits for it
        self.times = 0

    def ask(self, number: int | str) -> None:
        """A request with this number is sent."""
        self._open[coerce_request_id(number)] = True
        if len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]

    def forget(self, number: int | str) -> None:
        """Nobody waits for its answer any more."""
        if (number := coerce_request_id(number)) in self._open:
            self._open[number] = False

    def hear(self, message: JSONRPCMessage) -> None:
        """A message has come."""
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            if message.id is not None and self._open.pop(coerce_request_id(message.id), None) is not None:
                self.times += 1
        elif isinstance(message, JSONRPCNotification) and message.method == _PROGRESS:
            token = (message.params or {}).get("progressToken")
            if (
                isinstance(token, (int, str))
                and not isinstance(token, bool)
                and self._open.get(coerce_request_id(token))
            ):
                self.times += 1
