"""An answer in a form while it is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from deepstrike.stream import DoneEvent, TextDelta, ToolResultEvent, UsageEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.output.form import Form
    from deepstrike.stream import RunResult, StreamEvent

_SHARE: Final = 256
"""A text is read anew when it has grown by this part of itself, so reading costs at most so many times its length."""


class Events(Protocol):
    """The events of one run, dropped when it is."""

    async def __anext__(self) -> StreamEvent:
        """The next one. Raises `StopAsyncIteration` at the end."""

    async def aclose(self) -> None:
        """Stop the run and wait until it has let go."""


class Drafts:
    """What an answer says so far, again and again, and at last its validated value.

    Before that each item is what JSON decodes to, as far as it can be read and not validated; the next one says more,
    or begins anew in a turn that mends the answer. A very long answer is not shown at every word. Raises `RunFailed` at
    the end if the run's status is `error`; with another status than `completed` there is no value. Dropping it, or
    `aclose()`, stops the run.
    """

    __slots__ = ("_events", "_form", "_length", "_over", "_pieces", "_read", "_result", "_shown")

    def __init__(self, events: Events, form: Form, result: Callable[[], Awaitable[RunResult]]) -> None:
        """`result` gives how the run ended, and raises `RunFailed`."""
        self._events = events
        self._form = form
        self._result = result
        self._pieces: list[str] = []
        self._length = self._read = 0
        self._over = False
        self._shown: object = None

    def __aiter__(self) -> Drafts:
        return self

    async def __anext__(self) -> object:
        while True:
            try:
                event = await self._events.__anext__()
            except StopAsyncIteration:
                await self._result()
                raise
            if isinstance(event, DoneEvent) and event.output is not None:
                return event.output
            if isinstance(event, TextDelta):
                found = self._grown(event.delta)
                if found is not None and found != self._shown:
                    self._shown = found
                    return found
            elif isinstance(event, UsageEvent | ToolResultEvent):
                self._over = True

    async def aclose(self) -> None:
        """Stop the run and wait until it has let go."""
        await self._events.aclose()

    def _grown(self, delta: str) -> object | None:
        """What the text says with `delta` behind it; None while it says nothing or has not grown enough to look."""
        if self._over:
            self._pieces.clear()
            self._length = self._read = 0
            self._over = False
        self._pieces.append(delta)
        self._length += len(delta)
        if self._length - self._read < self._length // _SHARE:
            return None
        self._read = self._length
        self._pieces[:] = ["".join(self._pieces)]
        return self._form.partial(self._pieces[0])
