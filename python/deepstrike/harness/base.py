"""What a harness needs of whoever pursues the goal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deepstrike.attempt import Attempt, Budget, Stoppable
    from deepstrike.run import Run
    from deepstrike.sessions.base import SessionLog


class Attempts(Protocol):
    """Something that can begin an attempt; a `RuntimeRunner` is one, so is whatever runs a sub-agent."""

    @property
    def budget(self) -> Budget:
        """What all attempts of one goal, and those who judge them, may spend together."""

    @property
    def log(self) -> SessionLog:
        """Where the sessions of the attempts are kept; the verdicts are kept there too."""

    def attempt(self, attempt: Attempt) -> Run:
        """Begin an attempt in its session, or go on with the one that the log holds."""

    def interrupt(self, session_id: str) -> None:
        """Stop the attempt that is live on this session."""

    def attend(self, work: Stoppable) -> AbstractContextManager[None]:
        """Within the block an interrupt from outside reaches `work` too."""
