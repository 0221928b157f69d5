"""A run for each scheduled prompt, while somebody listens."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from deepstrike.clock import current_clock
from deepstrike.errors import DeepStrikeError, RunFailed, SessionBusy

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.host.post import Post
    from deepstrike.run import Run
    from deepstrike.sessions.base import SessionLog
    from deepstrike.signals.queue import Entry
    from deepstrike.stream import RunResult

    # The run of a session for a goal; None goes on with the session's last one.
    Begin = Callable[[str, str | None], Run]
    OnResult = Callable[[RunResult], object]

_log = logging.getLogger("deepstrike")

# How long a prompt for a session waits where another process has a live run on it.
BUSY_SECONDS = 1.0


class Listening:
    """One `RuntimeRunner.listen`. `run` once; `stop` from any thread."""

    def __init__(
        self, post: Post, log: SessionLog, begin: Begin, max_concurrency: int, on_result: OnResult | None
    ) -> None:
        self._post = post
        self._log = log
        self._begin = begin
        self._places = max_concurrency
        self._on_result = on_result
        self._changed: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._runs: set[asyncio.Task[None]] = set()
        self._stopped = False

    def stop(self) -> None:
        """Take no more prompts."""
        self._stopped = True
        self._tell()

    async def run(self) -> None:
        """Listen until the source says no more, or `stop`; then the runs under way end. Cancelling stops them."""
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        forget = self._post.queue.on_change(self._tell)
        await self._post.listen()
        try:
            while not self._stopped and not self._post.queue.closed:
                self._changed.clear()
                await self._post.ask()
                self._start()
                await self._changed.wait()
            if self._runs:
                await asyncio.wait(self._runs)
        finally:
            forget()
            for task in self._runs:
                task.cancel()
            await asyncio.gather(*self._runs, return_exceptions=True)
            await self._post.hush()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop was closed under it
            self._loop.call_soon_threadsafe(self._changed.set)

    def _start(self) -> None:
        while len(self._runs) < self._places and (entry := self._post.next_prompt()) is not None:
            task = self._loop.create_task(self._pursue(entry))
            self._runs.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._runs.discard(task)
        self._changed.set()

    async def _pursue(self, entry: Entry) -> None:
        """One prompt to its end. It leaves the store when its run has ended; if none could begin, it is given back."""
        session = entry.address or f"scheduled-{entry.id or secrets.token_hex(8)}"
        (taken,) = self._post.queue.assign(entry, [session])
        try:
            result = await self._result(session, str(entry.signal.payload["goal"]), entry.signal.session_id is None)
        except asyncio.CancelledError:
            self._post.queue.give_back([taken], to_any=False)
            raise
        except SessionBusy:
            await current_clock().sleep(BUSY_SECONDS)
            self._post.queue.give_back([taken])
            return
        except DeepStrikeError as error:
            _log.warning("the run of a scheduled prompt in session %r failed: %s", session, error.message)
        except Exception:
            _log.exception("the run of a scheduled prompt in session %r failed", session)
        else:
            self._report(result)
        self._post.queue.delivered([taken])

    async def _result(self, session: str, goal: str, is_own: bool) -> RunResult:
        """A session of the prompt's own that has a log already is one that a crash left."""
        is_left = is_own and await self._log.latest_seq(session) >= 0
        try:
            return await self._begin(session, None if is_left else goal)
        except RunFailed as failed:
            _log.warning("the run of a scheduled prompt in session %r failed: %s", session, failed.message)
            return failed.result

    def _report(self, result: RunResult) -> None:
        if self._on_result is None:
            return
        try:
            self._on_result(result)
        except Exception:
            _log.exception("on_result failed on the run of session %r", result.session_id)
