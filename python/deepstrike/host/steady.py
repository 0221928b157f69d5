"""Waiting that cancellation does not cut in two, and that ends."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from deepstrike.clock import Clock

T = TypeVar("T")

# How long a session log may take for one operation before it counts as failed.
LOG_SECONDS = 60.0

# How long it may take once somebody wants to leave.
LEAVE_SECONDS = 5.0

# How long others' work may take to heed a cancellation.
_HEED_SECONDS = 0.5

# Work that goes on, or may, when it was given up: held so that it is not collected while it runs.
_given_up: set[asyncio.Task[object]] = set()


class NoAnswer(Exception):
    """The work did not end within the limit. It goes on unobserved. Its cause is a cancellation meanwhile, if any."""


async def see_through(
    work: Coroutine[object, object, T], limit: float = LOG_SECONDS
) -> tuple[T, asyncio.CancelledError | None]:
    """Await `work` to its end, whatever cancels this task meanwhile; the second value is the first cancellation.

    Whoever goes on to raise it raises that very object: cancel scopes know theirs by what is in it. Raises what `work`
    raises, `NoAnswer` after `limit` seconds, or `LEAVE_SECONDS` behind a cancellation.
    """
    task = asyncio.create_task(work)
    ends = asyncio.get_running_loop().time() + limit
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task], timeout=ends - asyncio.get_running_loop().time())
        except asyncio.CancelledError as error:  # noqa: PERF203
            cancelled = cancelled or error
            ends = min(ends, asyncio.get_running_loop().time() + LEAVE_SECONDS)
        else:
            if not task.done():
                _leave(task)
                raise NoAnswer from cancelled
    return task.result(), cancelled


async def within(limit: float, work: Awaitable[T], clock: Clock | None = None) -> T:
    """Await `work` in this task, at most `limit` seconds: it is cancelled then, and `NoAnswer` raised.

    The seconds are those of `clock`, without one the event loop's, which goes on also where a clock stands still.
    """
    timing = asyncio.get_running_loop() if clock is None else clock
    task = asyncio.current_task()
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        if task is not None:
            task.cancel()

    timer = timing.call_later(limit, expire)
    try:
        return await work
    except asyncio.CancelledError:
        if not expired:
            raise
        if task is not None and sys.version_info >= (3, 11):
            task.uncancel()
        raise NoAnswer from None
    finally:
        timer.cancel()


async def apart(work: Coroutine[object, object, T], limit: float, clock: Clock | None = None) -> T:
    """Await `work`, which is not ours, in a task of its own: what it does with a cancellation does not hold us.

    It is cancelled after `limit` seconds (of `clock`, as in `within`), and `NoAnswer` raised; and where this task is
    cancelled. If it does not heed that within half a second, it goes on unobserved. Raises what `work` raises.
    """
    task = asyncio.create_task(work)
    _leave(task)
    try:
        return await within(limit, asyncio.shield(task), clock)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_HEED_SECONDS)


def _leave(task: asyncio.Task[Any]) -> None:
    _given_up.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[object]) -> None:
    _given_up.discard(task)
    if not task.cancelled():
        task.exception()


def forget_cancels(task: asyncio.Task[Any]) -> None:
    """Take back every request to cancel `task`, all of which have been served (Python 3.11 on counts them)."""
    if sys.version_info >= (3, 11):
        while task.cancelling():
            task.uncancel()


def has_cancels(task: asyncio.Task[Any]) -> bool:
    """Whether somebody asked to cancel `task` since the requests were last taken back (known from Python 3.11 on)."""
    return sys.version_info >= (3, 11) and task.cancelling() > 0


def told(error: BaseException) -> str:
    """Type and message of an exception, also where its own `__str__` fails."""
    try:
        text = str(error)
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
