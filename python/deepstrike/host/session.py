"""One session while a run is live on it: the kernel, and the log that is written before anything is acted on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from deepstrike.clock import not_before
from deepstrike.errors import DeepStrikeError
from deepstrike.host.agents import path_of
from deepstrike.host.folding import OFF_LOOP_BYTES, OFF_LOOP_TOKENS, asked, folded, off_loop
from deepstrike.host.narrate import Narrator
from deepstrike.host.prompt import Prompt
from deepstrike.host.recent import TAIL, Standing
from deepstrike.host.secrecy import Secrecy
from deepstrike.host.steady import LEAVE_SECONDS, LOG_SECONDS, NoAnswer, see_through, told, within
from deepstrike.kernel import warm
from deepstrike.records import moment_of
from deepstrike.wire.input import Failure, Interrupt, Reply, Resume, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from deepstrike.clock import Clock
    from deepstrike.host.oversight import Oversight
    from deepstrike.host.recent import Recent
    from deepstrike.host.secrecy import Vault
    from deepstrike.kernel import Kernel
    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.effect import Effect, Outcome
    from deepstrike.wire.input import Input, SetPolicy
    from deepstrike.wire.policy import Config

    # Records as the log keeps them, what is owed, the deadline, the outcome.
    Step = tuple[list[bytes], list[Effect], int | None, Outcome | None]

P = ParamSpec("P")
T = TypeVar("T")

_logger = logging.getLogger("deepstrike")
_warm: set[str] = set()


class JournalFailed(DeepStrikeError):
    """The log could not be written: this kernel has ended, the log holds all that was acted on."""

    default_code = "session_log"


class HostFailed(DeepStrikeError):
    """Something here failed that should not have: the run ends, the log holds all that was acted on."""

    default_code = "internal"


class Session:
    """Owns the session in the log from `open` to `close`. Not for use by two tasks at once."""

    __slots__ = (
        "_broken",
        "_log",
        "_next_seq",
        "_owner",
        "_vault",
        "clock",
        "id",
        "kernel",
        "limits",
        "model",
        "narrator",
        "oversight",
        "path",
        "prompt",
        "result_share",
        "secrecy",
    )

    def __init__(
        self,
        session_id: str,
        log: SessionLog,
        owner: str,
        standing: Standing,
        clock: Clock,
        config: Config,
        oversight: Oversight,
        vault: Vault,
    ) -> None:
        self.id = session_id
        self.path = path_of(config)
        self.kernel: Kernel = standing.kernel
        self.prompt = standing.prompt
        self.narrator = standing.narrator
        self.model = config.model.id
        self.limits = config.limits
        # The part of the window, in tokens, that one tool result may fill.
        self.result_share = max(1, config.limits.window // 4)
        self.oversight = oversight
        self.secrecy = Secrecy(vault.take(session_id))
        self._vault = vault
        self._log = log
        self._owner = owner
        self.clock = clock
        self._next_seq = standing.kernel.next_seq
        self._broken = False

    @classmethod
    async def open(
        cls, session_id: str, log: SessionLog, recent: Recent, clock: Clock, config: Config, oversight: Oversight
    ) -> Session:
        """Acquire the session and fold its log, or go on from what is remembered of it.

        Raises `SessionBusy`, `CorruptLog`, or another `SessionError` that says how the log failed.
        """
        owner = await asked(session_id, _acquired(session_id, log))
        try:
            await _warm_up(config.model.id)
            judge = oversight.judge
            standing = recent.take(session_id, judge)
            last = [] if standing is None else standing.tail[-1:]
            if standing is None or not await asked(session_id, _ends_alike(session_id, log, standing)):
                records = await asked(session_id, log.read(session_id))
                kernel = await folded(session_id, records, judge)
                standing = Standing(kernel, Prompt(), Narrator.after(records, path_of(config)), [], judge)
                last = records[-1:]
        except BaseException:
            await _release(session_id, log, owner)
            raise
        # Time goes on from the last record, also where the machine's clock was ahead then and was put right since.
        steady = not_before(clock, max((moment_of(line) for line in last), default=0))
        return cls(session_id, log, owner, standing, steady, config, oversight, recent.vault)

    async def rest(self, recent: Recent) -> None:
        """Remember how the session stands, for the next goal. A log that cannot be read leaves it to be folded."""
        if self._next_seq != self.kernel.next_seq:
            return
        try:
            tail = await within(LOG_SECONDS, self._log.read(self.id, max(0, self._next_seq - TAIL)))
        except Exception:
            _logger.warning("session %r is not remembered: its log could not be read", self.id, exc_info=True)
        else:
            recent.keep(self.id, Standing(self.kernel, self.prompt, self.narrator, tail, self.oversight.judge))

    def give_up(self) -> None:
        """The log does not answer: write nothing more to it, and do not wait for it long."""
        self._broken = True

    async def close(self) -> None:
        """Give the session back, to the end even when cancelled. A log that fails at this is reported, no more."""
        self._vault.keep(self.id, self.secrecy.withheld)
        await _release(self.id, self._log, self._owner, LEAVE_SECONDS if self._broken else LOG_SECONDS)

    def policy_change(self, item: Input) -> SetPolicy | None:
        """What the kernel has to hear of the policy before it takes `item`; None while nothing has changed."""
        change = self.oversight.change(item)
        return None if change is None or self.kernel.phase in ("idle", "ended") else change

    async def accept(self, item: Input) -> Step:
        """Hand an input to the kernel and append what it remembers; only then may anybody act on it.

        Cancelling does not part the two: both are seen through, and the cancellation is dropped, since none of the
        tasks that take inputs is cancelled but by a tool's leftovers or a loop that is torn down. Raises what the
        kernel raises for an input it does not take (nothing has changed then), `JournalFailed` when the log does not
        take the records; from then on every call raises it.
        """
        if self._broken:
            raise JournalFailed("the session log failed before, so nothing more is written to it by this run")
        data = self.secrecy.encoded(item, self.kernel.pending)
        now = self.clock.now_ms()
        if not self._takes_long(item, len(data), now):
            step = self.kernel.advance(data, now, self.oversight.judge)
        else:
            step = await self._advance_in_thread(data, now)
        if step[0]:
            self.secrecy.recorded(step[0])
            await self._append(step[0])
        return step

    def _takes_long(self, item: Input, size: int, now: int) -> bool:
        """Whether the kernel may need so long for an input that it would hold the loop."""
        if size > OFF_LOOP_BYTES:
            return True
        if self.kernel.prompt_tokens <= OFF_LOOP_TOKENS:
            return False
        if isinstance(item, Start | Resume | Failure):
            return True
        told = item.usage.input if isinstance(item, Reply) and item.usage is not None else 0
        return self.kernel.may_rewrite(size, told, now)

    async def _advance_in_thread(self, data: bytes, now: int) -> Step:
        try:
            work = asyncio.to_thread(self.kernel.advance, data, now, self.oversight.judge, aside=True)
            step, _ = await see_through(work)
        except asyncio.CancelledError:
            # Its waiting was cancelled, not the step: what the kernel took is not known here.
            self._broken = True
            raise JournalFailed("the run was torn down while an input was taken") from None
        return step

    def abandon(self) -> Outcome | None:
        """How things stood, for a run whose log cannot be written further: the log does not hear of this end.

        None where no goal was begun.
        """
        outcome = self.kernel.outcome()
        if outcome is None:
            self.kernel.accept(Interrupt("abandoned"), self.clock.now_ms())
            outcome = self.kernel.outcome()
        return outcome

    async def put_blob(self, data: bytes) -> str:
        """Keep `data` beside the log."""
        return await self._log.put_blob(self.id, data)

    async def records(self) -> list[bytes]:
        """All records of the session as the log holds them."""
        return await self._log.read(self.id)

    async def blob(self, ref: str) -> bytes:
        """All bytes of a blob beside the log. Raises `SessionError` for one that is not there."""
        return await self._log.get_blob(ref)

    async def off_loop(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(*args)`, in a thread where `size` bytes would hold the loop too long."""
        return await off_loop(size, work, *args, **kwargs)

    async def _append(self, batch: list[bytes]) -> None:
        try:
            await self._log.append(self.id, batch, self._next_seq, owner=self._owner)
        except asyncio.CancelledError:
            await self._seen_through(lambda: self._finish_append(batch), LEAVE_SECONDS)
        except BaseException as error:
            self._broken = True
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise _journal_failed(error) from error
        self._next_seq += len(batch)

    async def _finish_append(self, batch: list[bytes]) -> None:
        """A cancelled append left the batch whole or absent: make it whole, the kernel has taken it."""
        if await self._log.latest_seq(self.id) < self._next_seq:
            await self._log.append(self.id, batch, self._next_seq, owner=self._owner)

    async def _seen_through(self, work: Callable[[], Coroutine[object, object, T]], limit: float) -> T:
        try:
            result, _ = await _again_if_cancelled(work, limit)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # Whether the log has the records is not known: nothing may follow them.
            self._broken = True
            raise _journal_failed(error) from error
        return result


def _journal_failed(error: BaseException) -> JournalFailed:
    if isinstance(error, DeepStrikeError):
        return JournalFailed(error.message, code=error.code, retryable=error.retryable)
    if isinstance(error, NoAnswer):
        return JournalFailed("the session log did not answer in time")
    return JournalFailed(f"the session log failed: {told(error)}")


async def _acquired(session_id: str, log: SessionLog) -> str:
    """`log.acquire` to its end: a session that comes to be held when nobody waits for it any more is given back."""
    left = False

    async def take() -> str | Exception:
        try:
            owner = await log.acquire(session_id)
        except Exception as error:  # told behind a cancellation, which comes first
            return error
        if left:
            await _release(session_id, log, owner)
        return owner

    try:
        got, cancelled = await see_through(take())
    except BaseException as error:
        left = True
        if isinstance(error, NoAnswer) and isinstance(error.__cause__, asyncio.CancelledError):
            raise error.__cause__ from None
        raise
    if cancelled is not None:
        if isinstance(got, str):
            await _release(session_id, log, got)
        raise cancelled
    if isinstance(got, Exception):
        raise got
    return got


async def _release(session_id: str, log: SessionLog, owner: str, limit: float = LOG_SECONDS) -> None:
    """To its end, whatever cancels this task; a cancellation meanwhile is raised afterwards."""
    try:
        _, cancelled = await _again_if_cancelled(lambda: log.release(session_id, owner), limit)
    except (Exception, asyncio.CancelledError):
        _logger.exception("session %r could not be released and may stay busy", session_id)
    else:
        if cancelled is not None:
            raise cancelled


async def _again_if_cancelled(
    work: Callable[[], Coroutine[object, object, T]], limit: float
) -> tuple[T, asyncio.CancelledError | None]:
    """`see_through`, once more where a loop that is torn down has cancelled the work itself."""
    try:
        return await see_through(work(), limit)
    except asyncio.CancelledError as cancelled:
        result, _ = await see_through(work(), LEAVE_SECONDS)
        return result, cancelled


async def _warm_up(model: str) -> None:
    """The first count for a vocabulary decodes it, about a tenth of a second: not on the loop."""
    if model not in _warm:
        await asyncio.to_thread(warm, model)
        _warm.add(model)


async def _ends_alike(session_id: str, log: SessionLog, standing: Standing) -> bool:
    return await log.read(session_id, standing.kernel.next_seq - len(standing.tail)) == standing.tail
