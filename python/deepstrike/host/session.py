"""One session while a run is live on it: the kernel, and the log that is written before anything is acted on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from deepstrike.errors import CorruptLog, DeepStrikeError, SessionError
from deepstrike.host.prompt import Prompt
from deepstrike.host.recent import TAIL, Standing
from deepstrike.kernel import Corrupt, Kernel, count, encode_input
from deepstrike.wire.input import Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.clock import Clock
    from deepstrike.host.recent import Recent
    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.effect import Effect, Outcome
    from deepstrike.wire.input import Input
    from deepstrike.wire.policy import Config

    # Records as the log keeps them, what is owed, the deadline, the outcome.
    Step = tuple[list[bytes], list[Effect], int | None, Outcome | None]

P = ParamSpec("P")
T = TypeVar("T")

# Above this many bytes, counting and folding leave the event loop (kernel.md, Loops and threads).
OFF_LOOP_BYTES = 256 * 1024

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

    __slots__ = ("_clock", "_log", "_next_seq", "_owner", "id", "kernel", "model", "prompt", "result_share")

    def __init__(
        self,
        session_id: str,
        log: SessionLog,
        owner: str,
        kernel: Kernel,
        prompt: Prompt,
        clock: Clock,
        config: Config,
    ) -> None:
        self.id = session_id
        self.kernel = kernel
        self.prompt = prompt
        self.model = config.model.id
        # The part of the window, in tokens, that one tool result may fill.
        self.result_share = max(1, config.limits.window // 4)
        self._log = log
        self._owner = owner
        self._clock = clock
        self._next_seq = kernel.next_seq

    @classmethod
    async def open(cls, session_id: str, log: SessionLog, recent: Recent, clock: Clock, config: Config) -> Session:
        """Acquire the session and fold its log, or go on from what is remembered of it.

        Raises `SessionBusy`, `CorruptLog` and whatever the log raises.
        """
        owner = await log.acquire(session_id)
        try:
            await _warm_up(config.model.id)
            standing = recent.take(session_id)
            if standing is not None and await _ends_alike(session_id, log, standing):
                kernel, prompt = standing.kernel, standing.prompt
            else:
                records = await log.read(session_id)
                kernel, prompt = await _off_loop(sum(map(len, records)), _fold, session_id, records), Prompt()
        except BaseException:
            await log.release(session_id, owner)
            raise
        return cls(session_id, log, owner, kernel, prompt, clock, config)

    async def rest(self, recent: Recent) -> None:
        """Remember how the session stands, for the next goal. A log that cannot be read leaves it to be folded."""
        if self._next_seq != self.kernel.next_seq:
            return
        try:
            tail = await self._log.read(self.id, max(0, self._next_seq - TAIL))
        except Exception:
            _logger.warning("session %r is not remembered: its log could not be read", self.id, exc_info=True)
        else:
            recent.keep(self.id, Standing(self.kernel, self.prompt, tail))

    async def close(self) -> None:
        """Give the session back. A log that fails at this is reported, the run's result stands."""
        try:
            await self._log.release(self.id, self._owner)
        except Exception:
            _logger.exception("session %r could not be released and may stay busy", self.id)

    async def accept(self, item: Input) -> Step:
        """Hand an input to the kernel and append what it remembers; only then may anybody act on it.

        Raises what the kernel raises for an input it does not take (nothing has changed then), `JournalFailed` when
        the log does not take the records.
        """
        data = encode_input(item)
        if len(data) <= OFF_LOOP_BYTES:
            step = self.kernel.advance(data, self._clock.now_ms())
            if step[0]:
                await self._append(step[0])
            return step
        # Cancelling must not part what the kernel took from what the log holds.
        work = asyncio.create_task(self._accept_in_thread(data))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    async def _accept_in_thread(self, data: bytes) -> Step:
        step = await asyncio.to_thread(self.kernel.advance, data, self._clock.now_ms())
        if step[0]:
            await self._append(step[0])
        return step

    def abandon(self) -> Outcome:
        """How things stood, for a run whose log cannot be written further: the log does not hear of this end."""
        outcome = self.kernel.outcome()
        if outcome is None:
            self.kernel.accept(Interrupt("abandoned"), self._clock.now_ms())
            outcome = self.kernel.outcome()
        if outcome is None:
            raise SessionError(f"session {self.id!r}: no goal was begun")
        return outcome

    async def put_blob(self, data: bytes) -> str:
        """Keep `data` beside the log."""
        return await self._log.put_blob(self.id, data)

    async def off_loop(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(*args)`, in a thread where `size` bytes would hold the loop too long."""
        return await _off_loop(size, work, *args, **kwargs)

    async def _append(self, batch: list[bytes]) -> None:
        try:
            await self._log.append(self.id, batch, self._next_seq, owner=self._owner)
        except asyncio.CancelledError:
            await self._finish_append(batch)
            raise
        except DeepStrikeError as error:
            raise JournalFailed(error.message, code=error.code, retryable=error.retryable) from error
        except Exception as error:
            raise JournalFailed(f"the session log failed: {type(error).__name__}: {error}") from error
        self._next_seq += len(batch)

    async def _finish_append(self, batch: list[bytes]) -> None:
        """A cancelled append left the batch whole or absent: make it whole, the kernel has taken it."""
        if await self._log.latest_seq(self.id) < self._next_seq:
            await self._log.append(self.id, batch, self._next_seq, owner=self._owner)
        self._next_seq += len(batch)


async def _off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    if size <= OFF_LOOP_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def _warm_up(model: str) -> None:
    """The first count for a vocabulary decodes it, about a tenth of a second: not on the loop."""
    if model not in _warm:
        await asyncio.to_thread(count, "warm", model)
        _warm.add(model)


async def _ends_alike(session_id: str, log: SessionLog, standing: Standing) -> bool:
    return await log.read(session_id, standing.kernel.next_seq - len(standing.tail)) == standing.tail


def _fold(session_id: str, records: list[bytes]) -> Kernel:
    if not records:
        return Kernel()
    try:
        return Kernel.replay(records)
    except Corrupt as error:
        raise CorruptLog(f"session {session_id!r}: {error}") from error
    except ValueError as error:
        raise SessionError(f"session {session_id!r}: {error}") from error
