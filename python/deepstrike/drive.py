"""The drive loop: inputs into the kernel, records into the log, effects into the world, events to the caller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from deepstrike.host.narrate import Narrator
from deepstrike.kernel import Stale
from deepstrike.wire.input import Clock as ClockInput
from deepstrike.wire.input import Interrupt

if TYPE_CHECKING:
    from deepstrike.clock import Clock, Timer
    from deepstrike.host.crew import Crew
    from deepstrike.host.inbox import Inbox
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.session import Session
    from deepstrike.wire.effect import Outcome
    from deepstrike.wire.input import Input


class Drive:
    """Drives one goal of one session to its end."""

    __slots__ = ("_clock", "_crew", "_deadline", "_inbox", "_narrator", "_outbox", "_session", "_timer")

    def __init__(self, session: Session, crew: Crew, inbox: Inbox, outbox: Outbox, clock: Clock) -> None:
        self._session = session
        self._crew = crew
        self._inbox = inbox
        self._outbox = outbox
        self._clock = clock
        self._narrator = Narrator()
        self._timer: Timer | None = None
        self._deadline: int | None = None

    async def run(self, first: Input) -> Outcome:
        """Until the goal has ended. Cancelling stops what is in flight and leaves a log that ends `user_abort`."""
        kernel = self._session.kernel
        try:
            await self._accept(first)
            while (outcome := kernel.outcome()) is None:
                self._crew.launch(kernel.pending())
                self._arm(kernel.deadline())
                await self._handle(await self._inbox.take())
            return outcome
        except asyncio.CancelledError:
            await self._handle(Interrupt("the caller left"))
            raise
        finally:
            self._arm(None)
            await self._crew.halt()

    async def _handle(self, item: Input) -> None:
        if isinstance(item, Interrupt | ClockInput):
            await self._crew.halt()
            while (late := self._inbox.poll()) is not None:
                await self._accept(late)
        await self._accept(item)

    async def _accept(self, item: Input) -> None:
        try:
            records = await self._session.accept(item)
        except Stale:
            return
        for record in records:
            for event in self._narrator.narrate(record):
                self._outbox.put(event)

    def _arm(self, deadline: int | None) -> None:
        if deadline == self._deadline:
            return
        self._deadline = deadline
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            delay = max(0, deadline - self._clock.now_ms()) / 1000
            self._timer = self._clock.call_later(delay, self._ring)

    def _ring(self) -> None:
        """The kernel decides whether time is up; a timer that fires early is armed again."""
        due, self._deadline = self._deadline, None
        if due is not None and self._clock.now_ms() >= due:
            self._inbox.push(ClockInput())
        else:
            self._arm(due)
