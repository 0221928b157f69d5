"""What a tool may know of the call it serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _discard(_text: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Injected into a parameter annotated `ToolContext`; it is not part of the tool's schema.

    `idempotency_key` is made from session, call and arguments and stays the same when the call is run again after a
    crash. `deps` is what the caller passed as `deps=` to the run.
    """

    session_id: str
    call_id: str
    idempotency_key: str
    agent_id: str | None = None
    deps: Any = None
    _cancelled: Event = field(default_factory=Event, repr=False, compare=False)
    _emit: Callable[[str], None] = field(default=_discard, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for this call any more: a sync tool in a loop should look at it and return."""
        return self._cancelled.is_set()

    def emit(self, text: str) -> None:
        """Show progress as a `ToolDeltaEvent`; never part of the result. Safe from any thread, never blocks.

        While the caller does not keep up, the oldest unseen progress is dropped.
        """
        self._emit(text)
