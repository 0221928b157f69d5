"""What every contestant can do; a floor leaves out what it has nothing for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

OnText = Callable[[str], None]
OnTurn = Callable[[int], None]
Run = Callable[[OnText | None], Awaitable[str]]


class Contestant(Protocol):
    """Each method gives an async function that does one whole run and returns its text."""

    def over_http(self, base_url: str) -> Run:
        """The tool loop over HTTP, streamed."""

    def in_process(self, turns: int, said: list[str], sleep: float = 0.0, on_turn: OnTurn | None = None) -> Run:
        """The tool loop over an in-process scripted model: `turns` calls, then the text `said`."""

    async def behind_history(self, base_url: str) -> Run:
        """A run over HTTP behind 10,000 messages; each further one goes on from the last in this process."""

    async def from_history(self, base_url: str) -> Callable[[], Awaitable[Run]]:
        """Gives, each time anew, a run over HTTP that knows the 10,000 messages only from what was stored of them."""

    def decoded(self, pieces: list[bytes]) -> int:
        """Read one streamed answer from these pieces of its body; how many text deltas it had."""
