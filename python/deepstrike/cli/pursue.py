"""One goal from the command line: events to the screen, Ctrl-C to the run."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from deepstrike.stream import DoneEvent

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from types import FrameType

    from deepstrike.cli.show import Show
    from deepstrike.runner import RuntimeRunner

T = TypeVar("T")

_GRACE_SECONDS = 2
"""How long the end of a command waits for tasks that were cancelled."""


class Loop:
    """The event loop of one command. Leaving it ends the tasks that are left and closes it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_SECONDS))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` to its end."""
        return self._loop.run_until_complete(work)


async def pursue(runner: RuntimeRunner, goal: str, show: Show, session_id: str | None = None) -> DoneEvent:
    """Run `goal` and show it; returns the last event.

    The first Ctrl-C interrupts the run, which then ends `user_abort`; a second one raises `KeyboardInterrupt`. Raises
    what `run_streaming` raises.
    """
    done: DoneEvent | None = None
    with _ctrl_c_interrupts(runner), show:
        async with runner.run_streaming(goal, session_id=session_id) as run:
            async for event in run:
                show.event(event)
                if isinstance(event, DoneEvent):
                    done = event
    if done is None:
        raise RuntimeError("the run ended without a DoneEvent; please report this")
    return done


@contextmanager
def _ctrl_c_interrupts(runner: RuntimeRunner) -> Iterator[None]:
    pressed = False

    def on_ctrl_c(_signal: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        runner.interrupt()

    before = signal.signal(signal.SIGINT, on_ctrl_c)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
