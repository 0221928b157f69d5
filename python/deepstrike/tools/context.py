"""What a tool may know of the call it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from deepstrike.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.host.agents import Agent


class Flag:
    """Raised once, by any thread, and seen by all; a plain attribute, since nobody waits for it.

    One of a part of the work is raised with that of the `whole`.
    """

    __slots__ = ("_raised", "_whole")

    def __init__(self, whole: Flag | None = None) -> None:
        self._raised = False
        self._whole = whole

    def set(self) -> None:
        """Raise the flag."""
        self._raised = True

    def is_set(self) -> bool:
        """True once it is raised."""
        return self._raised or (self._whole is not None and self._whole.is_set())


def _discard(_text: str) -> None:
    return


class Hire(Protocol):
    """Puts a sub-agent to work within this call, or goes on with it, and gives what it says in the end.

    `agent` is what can be put to work (`deepstrike.host.agents.Agent`). Raises `ToolError` where it does not complete
    its task; the call is closed, and run again later, where it has to wait.
    """

    async def __call__(self, agent: Agent, role: str, task: str, tools: tuple[str, ...] | None = None) -> str:
        """See the class."""


async def _nobody(agent: Agent, role: str, task: str, tools: tuple[str, ...] | None = None) -> str:
    raise ToolError("this tool puts a sub-agent to work, which only a run can do")


class ToolContext(msgspec.Struct, frozen=True, eq=False):
    """Injected into a parameter annotated `ToolContext`; it is not part of the tool's schema.

    `idempotency_key` is made from session, call and arguments and stays the same when the call is run again after a
    crash. `deps` is what the caller passed as `deps=` to the run.
    """

    session_id: str
    call_id: str
    idempotency_key: str
    agent_id: str | None = None
    deps: Any = None
    _cancelled: Flag = msgspec.field(default_factory=Flag)
    _emit: Callable[[str], None] = _discard
    _hire: Hire = _nobody

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for this call any more: a sync tool in a loop should look at it and return."""
        return self._cancelled.is_set()

    def emit(self, text: str) -> None:
        """Show progress as a `ToolDeltaEvent`; never part of the result. Safe from any thread, never blocks.

        While the caller does not keep up, the oldest unseen progress is dropped.
        """
        self._emit(text)

    def __repr__(self) -> str:
        return f"ToolContext(session_id={self.session_id!r}, call_id={self.call_id!r}, agent_id={self.agent_id!r})"
