"""The seam between calls and the HTTP library, and the time limits of a call."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol

from deepstrike.providers.settings import check_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping


class Answer(Protocol):
    """An HTTP answer whose headers have arrived. Header names are looked up in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """The next bytes of the body as they come, `b""` at its end. Raises `Truncated` when the connection breaks."""

    async def settle(self, limit: float) -> None:
        """Wait up to `limit` seconds for the body's end, so that the connection can be used again."""

    def close(self) -> None:
        """Let go of the connection. Nothing is waited for; a body not read to its end ends the connection."""


class Transport(Protocol):
    """Sends requests. Usable from several loops and threads, and after a fork."""

    async def post(self, body: bytes) -> Answer:
        """Send `body`. Raises `Unreachable` when no answer begins. Cancelling it ends the request."""

    async def aclose(self) -> None:
        """Close the connections of the running loop."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds; None switches one off.

    `connect`: until the TCP connection to one address stands. `first_event`: from the request to the first event of the
    answer (models may think, or be loaded, for minutes before it). `idle`: between two bytes of the answer, keep-alive
    comments included. `progress`: between two events of the answer, which comments do not count for. A limit that is
    passed ends the call with `Stalled` (`connect`: `Unreachable`), which is retried while nothing was shown.
    """

    connect: float | None = 10.0
    first_event: float | None = 600.0
    idle: float | None = 300.0
    progress: float | None = 600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if (seconds := getattr(self, field.name)) is not None:
                check_seconds(f"Timeouts.{field.name}", seconds, above_zero=True, otherwise=", or None for none")
