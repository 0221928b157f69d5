"""From a source of somebody's own into a queue: asked while somebody hears, reported once where it fails."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from deepstrike.errors import DeepStrikeError, QueueFull
from deepstrike.host.steady import told
from deepstrike.signals.signal import RuntimeSignal

if TYPE_CHECKING:
    from deepstrike.signals.queue import SignalQueue
    from deepstrike.signals.source import SignalSource

_log = logging.getLogger("deepstrike")

# How long a source that is asked no more may hold on to its question.
GRACE_SECONDS = 1.0

# After so many signals in a row the loop gets its turn, in case the source never waits.
_STREAK = 100


class Pump:
    """Asks one source, in one task at a time on one loop."""

    __slots__ = ("_failed", "_held", "_queue", "_source", "_task", "loop")

    def __init__(self, source: SignalSource, queue: SignalQueue) -> None:
        self._source = source
        self._queue = queue
        self._task: asyncio.Task[None] | None = None
        self._held: RuntimeSignal | None = None
        self._failed = False
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def rests(self) -> bool:
        """Whether the source is not being asked: it had nothing, or failed."""
        return self._task is None or self._task.done()

    def ask(self) -> None:
        """Ask the source, on the running loop, if it is not being asked."""
        if self.rests or self.loop is None or self.loop.is_closed():
            self.loop = asyncio.get_running_loop()
            self._task = self.loop.create_task(self._run())

    async def stop(self) -> None:
        """Ask no more. A source that does not let go of its question within a second is left behind."""
        task, self._task = self._task, None
        if task is None or task.done():
            return
        task.cancel()
        _, stuck = await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if stuck:
            self._report("did not let go of its question when it was cancelled")

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            while await self._one():
                pass
        except asyncio.CancelledError:
            if task is self._task:
                self._report("was cancelled from inside")
            else:
                raise
        except DeepStrikeError as error:
            self._report(error.message)
        except Exception as error:
            self._report(f"failed: {told(error)}")

    async def _one(self) -> bool:
        """Take some signals; False where there are none now."""
        for _ in range(_STREAK):
            signal = self._held if self._held is not None else await self._source.next_signal()
            if signal is None:
                return False
            self._held = signal if isinstance(signal, RuntimeSignal) else None
            await self._hand_in(signal)
            self._held = None
        await asyncio.sleep(0)
        return True

    async def _hand_in(self, signal: RuntimeSignal) -> None:
        """Into the queue, waiting while it is full: the source is not asked for more meanwhile."""
        room = asyncio.Event()
        forget = self._queue.on_change(room.set)
        try:
            while True:
                room.clear()
                with suppress(QueueFull):
                    self._queue.put(signal)
                    return
                await room.wait()
        finally:
            forget()

    def _report(self, what: str) -> None:
        if not self._failed:
            self._failed = True
            _log.warning("the signal source %s %s; runs go on without it", type(self._source).__name__, what)
