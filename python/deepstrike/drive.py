"""The drive loop: inputs into the kernel, records into the log, effects into the world, events to the caller.

Inputs are taken one at a time, by whichever task brings the first one: an effect's own task hands its result in and
goes on with what the kernel owes next, so a turn in which nothing runs in parallel wakes no other task.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from deepstrike.host.crew import Crew
from deepstrike.host.narrate import says_nothing
from deepstrike.host.post import Knock
from deepstrike.host.session import HostFailed, JournalFailed
from deepstrike.host.steady import LEAVE_SECONDS, LOG_SECONDS, see_through, told
from deepstrike.kernel import Stale, decode_record
from deepstrike.signals.signal import as_wire
from deepstrike.wire.input import Answer, Interrupt, Notify
from deepstrike.wire.input import Clock as ClockInput

if TYPE_CHECKING:
    from deepstrike.clock import Clock, Timer
    from deepstrike.errors import DeepStrikeError
    from deepstrike.host.crew import Effort, Means
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.post import Mailbox
    from deepstrike.host.session import Session, Step
    from deepstrike.signals.queue import Entry
    from deepstrike.wire.effect import Outcome
    from deepstrike.wire.input import Input


_log = logging.getLogger("deepstrike")
_STOPS = (Interrupt, ClockInput)

_KNOCK = Knock()
_HEARING = frozenset({"thinking", "acting", "waiting"})


class Drive:
    """Drives one goal of one session to its end. All on one event loop, but for `interrupt`."""

    __slots__ = (
        "_clock",
        "_crew",
        "_deadline",
        "_free",
        "_inputs",
        "_loop",
        "_mail",
        "_narrate",
        "_outbox",
        "_over",
        "_session",
        "_since",
        "_taking",
        "_timer",
        "_watcher",
    )

    def __init__(self, session: Session, means: Means, outbox: Outbox, clock: Clock, mail: Mailbox) -> None:
        self._session = session
        self._mail = mail
        self._crew = Crew(session, outbox, means, self.take)
        self._outbox = outbox
        self._clock = clock
        self._narrate = session.narrator.narrate
        self._inputs: deque[Input | Knock] = deque()
        self._taking = False
        self._free: asyncio.Future[None] | None = None
        self._timer: Timer | None = None
        self._watcher: Timer | None = None
        self._deadline: int | None = None
        self._since = 0.0
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[Outcome] = self._loop.create_future()

    async def run(self, *inputs: Input) -> Outcome:
        """Take these inputs, and go on until the goal has ended or waits.

        Cancelling stops what is in flight and leaves a log that ends `user_abort`.
        """
        self._watcher = self._loop.call_later(LOG_SECONDS, self._watch)
        try:
            self._inputs.extend(inputs[:-1])
            self._crew.spawn(inputs[-1])
            self._mail.attach(self._knock)
            return await asyncio.shield(self._over)
        except asyncio.CancelledError:
            await see_through(self._end())
            raise
        finally:
            if self._watcher is not None:
                self._watcher.cancel()
            self._arm(None)
            await self._crew.halt()

    def interrupt(self, reason: str) -> None:
        """End the run `user_abort`, from any thread. Does nothing once the loop is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._crew.spawn, Interrupt(reason))

    def _knock(self) -> None:
        if self._taking:
            if _KNOCK not in self._inputs:
                self._inputs.append(_KNOCK)
        elif not self._over.done():
            self._crew.spawn(_KNOCK)

    async def take(self, item: Input | Knock, by: Effort | None = None) -> None:
        """Take an input, which the effort `by` came to; when another one is being taken, it is next.

        What fails ends the run. Raises only `CancelledError`, where everything is cancelled, and what must not be held
        back (`KeyboardInterrupt`, `SystemExit`, `GeneratorExit`).
        """
        self._inputs.append(item)
        if self._taking:
            return
        self._taking = True
        try:
            while self._inputs and not self._over.done():
                self._since = self._loop.time()
                await self._handle(self._inputs.popleft(), by)
        except (JournalFailed, HostFailed) as error:
            self._fail(error)
        except asyncio.CancelledError:
            raise  # only where everything is cancelled: then `_end` goes on
        except BaseException as error:
            _log.exception("a run failed in the host")
            self._fail(HostFailed(f"the run failed inside deepstrike: {told(error)}; please report it"), error)
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
        finally:
            self._taking = False
            if self._free is not None and not self._free.done():
                self._free.set_result(None)

    def _fail(self, failure: DeepStrikeError, cause: BaseException | None = None) -> None:
        if not self._over.done():
            failure.__cause__ = failure.__cause__ or cause
            self._over.set_exception(failure)

    def _give_up(self, why: str) -> None:
        self._session.give_up()
        self._fail(JournalFailed(why))

    def _watch(self) -> None:
        """A log that does not answer must not hold the run for ever: looks now and then, costs a turn nothing."""
        if self._over.done():
            return
        if self._taking and self._loop.time() - self._since > LOG_SECONDS:
            self._give_up(f"the session log did not answer within {LOG_SECONDS:g} s")
        else:
            self._watcher = self._loop.call_later(LOG_SECONDS / 2, self._watch)

    async def _end(self) -> None:
        """End the run `user_abort`, also where the task that takes an input is cancelled in the middle of it.

        A loop that is torn down cancels every task, those of effects and interrupts with this one.
        """
        while not self._over.done():
            if self._taking:
                self._free = free = self._loop.create_future()
                await asyncio.wait({free}, timeout=LEAVE_SECONDS)
                if not free.done() and not self._over.done():
                    self._give_up("the run was left while the session log did not answer")
            else:
                await self.take(Interrupt("the caller left"))
                if self._session.kernel.phase == "idle":
                    self._fail(HostFailed("the run was left before its goal was taken"))
                await asyncio.sleep(0)
        self._over.exception()

    async def _handle(self, item: Input | Knock, by: Effort | None) -> None:
        step: Step | None = None
        if isinstance(item, _STOPS):
            await self._stop()
        elif isinstance(item, Knock) or self._mail.presses:
            step = await self._hear()  # before anything else, which may end the goal
        if not isinstance(item, Knock):
            step = await self._accept(item) or step
        step = await self._before_asking(step)
        # What comes too late may still be the last that a parked run was waiting to hear.
        outcome = self._session.kernel.outcome() if step is None else step[3]
        if outcome is not None and not (self._inputs and outcome.status == "suspended"):
            if not self._over.done():
                self._over.set_result(outcome)
            return
        if step is None:
            return
        _, owed, deadline, _ = step
        self._crew.launch(owed, by)
        if deadline != self._deadline:
            self._arm(deadline)

    async def _stop(self) -> None:
        """What a stopped model call had shown, and results that came in meanwhile, stand before the stop."""
        late = [*await self._crew.halt(), *(item for item in self._inputs if not isinstance(item, Knock))]
        for item in late:
            await self._accept(item)
        self._inputs.clear()

    async def _hear(self) -> Step | None:
        """What is urgent, and while tools run the rest too: the model call to come reads it all.

        Critical signals are in the log before what they stop; then the model reads them in front of anything else.
        """
        phase = self._session.kernel.phase
        if phase not in _HEARING:
            return None
        heard = self._mail.take(plain=phase == "acting")
        if any(entry.signal.stops for entry in heard):
            await self._stop()
        step = await self._notify(heard, renews=False)
        if step is None or step[3] is not None or not any(entry.signal.urgency == "critical" for entry in heard):
            return step
        for item in await self._crew.cut():
            step = await self._accept(item) or step
        return step

    async def _before_asking(self, step: Step | None) -> Step | None:
        """A model call that has not begun reads all that waits."""
        if step is None or not self._mail.may_have() or not self._crew.is_new_call(step[1]):
            return step
        await self._mail.look()
        return await self._notify(self._mail.take(plain=True), renews=True) or step

    async def _notify(self, heard: list[Entry], *, renews: bool) -> Step | None:
        if not heard or self._session.kernel.phase not in _HEARING:
            return None
        first, *more = [as_wire(entry.signal, entry.id, from_user=entry.from_user) for entry in heard]
        step = await self._accept(Notify(first, tuple(more), renews))
        self._mail.delivered(heard)
        return step

    async def _accept(self, item: Input) -> Step | None:
        """None for an answer to what is no longer owed. A changed policy is taken first."""
        change = self._session.policy_change(item)
        if change is None:
            return await self._take_in(item)
        changed = await self._take_in(change)
        return await self._take_in(item) or changed

    async def _take_in(self, item: Input) -> Step | None:
        try:
            step = await self._session.accept(item)
        except Stale:
            return None
        if isinstance(item, Answer):
            self._crew.answered(item)
        put = self._outbox.put
        for line in step[0]:
            if says_nothing(line):
                continue
            for event in self._narrate(decode_record(line)):
                put(event)
        return step

    def _arm(self, deadline: int | None) -> None:
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
            self._crew.spawn(ClockInput())
        else:
            self._arm(due)
