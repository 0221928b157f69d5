"""One goal from the command line: events to the screen, signals to the run."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from deepstrike.cli.signals import leave, leave_on_signals, on_signals
from deepstrike.stream import DoneEvent

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from types import FrameType

    from deepstrike.cli.show import Show
    from deepstrike.run import Run
    from deepstrike.runner import RuntimeRunner

T = TypeVar("T")

_GRACE_SECONDS = 1
"""How long the end of a command waits for tasks that were cancelled."""
_LEAVE_SECONDS = 2
"""How long a run may take to end after SIGTERM or SIGHUP."""


class Loop:
    """The event loop of one command. Leaving it ends the tasks that are left and closes it.

    `left_behind` tells afterwards whether one of them did not end.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.left_behind = False

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_SECONDS))
            self.left_behind = bool(asyncio.all_tasks(self._loop))
            if not self.left_behind:  # one of them may hold a generator that never ends either
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.set_exception_handler(lambda _loop, _context: None)  # tasks left behind are no news
            self._loop.close()

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` to its end."""
        return self._loop.run_until_complete(work)


async def pursue(runner: RuntimeRunner, work: Run, show: Show) -> DoneEvent:
    """Show a run of `runner` until it ends; returns the last event.

    The first Ctrl-C interrupts the run, which then ends `user_abort`; a second one ends the process. So do SIGTERM and
    SIGHUP, once the run has ended or has taken too long for it. Raises what the run raises.
    """
    done: DoneEvent | None = None
    with signals_interrupt(runner), show:
        async with work as run:
            async for event in run:
                show.event(event)
                if isinstance(event, DoneEvent):
                    done = event
    if done is None:
        raise RuntimeError("the run ended without a DoneEvent; please report this")
    return done


@contextmanager
def signals_interrupt(runner: RuntimeRunner) -> Iterator[None]:
    """Within the block the first signal interrupts every run of `runner`, a second one ends the process."""
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if came:
            leave(number)
        came.append(number)
        with suppress(RuntimeError):  # the loop is closed
            # By way of the loop: the code that this handler breaks into may hold the runner's lock.
            loop.call_soon_threadsafe(runner.interrupt)
        if number != signal.SIGINT:
            late = threading.Timer(_LEAVE_SECONDS, leave, (number,))
            late.daemon = True
            late.start()

    on_signals(on_signal)
    try:
        yield
    finally:
        leave_on_signals()
        if came and came[0] != signal.SIGINT:
            leave(came[0])
