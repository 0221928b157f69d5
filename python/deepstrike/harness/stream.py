"""A harness as its caller holds it: iterate it, or drop it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from deepstrike.harness.events import HarnessDoneEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator
    from types import TracebackType

    from deepstrike.harness.course import Course
    from deepstrike.harness.events import HarnessEvent
    from deepstrike.harness.outcome import HarnessOutcome


class HarnessRun:
    """The events of a harness, once. Nothing happens before the first is asked for.

    `async for event in run`, or, the same, `async for event in await run`. Only the last event has the type `done`; it
    carries `verdict` and `outcome`. Dropping it (`break`, `aclose()`, cancellation) stops the attempt or the judge and
    leaves valid logs; `async with run` does so at the end of the block.
    """

    __slots__ = ("_events", "_taken")

    def __init__(self, course: Course) -> None:
        self._events = course.events()
        self._taken = False

    def __aiter__(self) -> AsyncIterator[HarnessEvent]:
        if self._taken:
            raise RuntimeError("the events of a harness are iterated once: call run_streaming again")
        self._taken = True
        return self._events

    def __await__(self) -> Generator[object, None, HarnessRun]:
        return _at_once(self).__await__()

    async def __aenter__(self) -> HarnessRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop what is under way and wait until it has let go. Closing twice does nothing."""
        await self._events.aclose()

    async def outcome(self) -> HarnessOutcome:
        """Run to the end without listening."""
        async with aclosing(self):
            async for event in self:
                if isinstance(event, HarnessDoneEvent):
                    return event.outcome
        raise RuntimeError("the harness ended without an outcome; please report this")


async def _at_once(run: HarnessRun) -> HarnessRun:
    return run
