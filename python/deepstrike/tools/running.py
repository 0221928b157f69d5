"""Running one tool call: every failure becomes a result, and only a real cancellation gets out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from inspect import isawaitable
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Final

from deepstrike.clock import current_clock
from deepstrike.text import well_formed
from deepstrike.tools.arguments import INVALID, InvalidArguments
from deepstrike.tools.failures import failure, failure_of
from deepstrike.tools.results import Kept, as_text, to_parts
from deepstrike.tools.threads import iterate_in_thread, run_in_thread
from deepstrike.wire.message import File, Image, Part, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.execution.base import Invocation
    from deepstrike.tools.definition import Tool

GRACE_SECONDS: Final = 1.0
"""How long a stopped async tool may take to clean up before it is left alone."""

_PART = (Text, Image, File)
_CANNOT_ASK: Final = sys.version_info < (3, 11)
"""Python 3.10 cannot tell whether a task was cancelled from outside, so there the tool gets a task of its own."""

_strays: set[asyncio.Task[ToolResult]] = set()


async def run_tool(tool: Tool[..., object], invocation: Invocation) -> ToolResult:
    """Run the call with validated arguments. Every failure is a result with an `error_kind`.

    `CancelledError` gets out only if the caller's task was cancelled; one that the tool itself raises is an error
    result. So is `SystemExit`: a tool cannot end the program. `KeyboardInterrupt` gets out.
    """
    if tool.timeout_ms is not None or _CANNOT_ASK:
        return await _in_own_task(tool, invocation)
    try:
        return await _attempt(tool, invocation)
    except asyncio.CancelledError as error:
        if _cancel_requests():
            invocation.context._cancelled.set()
            raise
        return failure_of(error)


def _cancel_requests() -> int:
    if sys.version_info >= (3, 11):
        task = asyncio.current_task()
        return task.cancelling() if task is not None else 0
    else:  # noqa: RET505  (mypy takes either branch by the version that it checks for)
        return 0


async def _in_own_task(tool: Tool[..., object], invocation: Invocation) -> ToolResult:
    """With a task of its own the tool can be stopped, and left alone if it does not stop."""
    attempt = asyncio.ensure_future(_attempt(tool, invocation))
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    attempt.add_done_callback(lambda _: _open(over))
    expired = False

    def expire() -> None:
        nonlocal expired
        if not attempt.done():
            expired = True
            _stop(attempt, invocation, over)

    timer = current_clock().call_later(tool.timeout_ms / 1000, expire) if tool.timeout_ms is not None else None
    try:
        await over
    except asyncio.CancelledError:
        await _stopped(attempt, invocation)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    if expired:
        return failure(
            "timeout",
            f"{tool.name} did not finish within {tool.timeout_ms} ms and was stopped; it may have taken effect",
        )
    return failure_of(asyncio.CancelledError()) if attempt.cancelled() else attempt.result()


def _open(gate: asyncio.Future[None]) -> None:
    if not gate.done():
        gate.set_result(None)


def _stop(attempt: asyncio.Task[ToolResult], invocation: Invocation, over: asyncio.Future[None]) -> None:
    """Cancel the attempt and open the gate when it has ended, or after the grace."""
    invocation.context._cancelled.set()
    attempt.cancel()
    _strays.add(attempt)
    attempt.add_done_callback(_forget)
    timer = current_clock().call_later(GRACE_SECONDS, lambda: _open(over))
    attempt.add_done_callback(lambda _: timer.cancel())


def _forget(attempt: asyncio.Task[ToolResult]) -> None:
    _strays.discard(attempt)
    if not attempt.cancelled():
        attempt.exception()  # its late outcome is fenced off; looking at it keeps asyncio from reporting it


async def _stopped(attempt: asyncio.Task[ToolResult], invocation: Invocation) -> None:
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    attempt.add_done_callback(lambda _: _open(over))
    _stop(attempt, invocation, over)
    await over


async def _attempt(tool: Tool[..., object], invocation: Invocation) -> ToolResult:
    try:
        positional, named = tool.bind(invocation.args_text, invocation.context)
    except InvalidArguments as refused:
        return failure(INVALID, str(refused))
    except Exception as error:  # a validator or default factory of the user's own
        return failure_of(error)
    try:
        if tool.on_loop:
            value = tool.function(*positional, **named)
            if type(value) is CoroutineType:  # the common case; what it returns may still be something to await
                value = await value
        else:
            value = await run_in_thread(partial(tool.function, *positional, **named))
        parts = to_parts(value) if isinstance(value, str) else await _content(value, invocation.show)
        return ToolResult(parts=parts)
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        return failure_of(error)


async def _content(value: object, show: Callable[[str, object | None], Awaitable[None]]) -> tuple[Part, ...]:
    """The value as content, after awaiting what can be awaited and streaming what yields."""
    if isawaitable(value):
        value = await value
    if isinstance(value, GeneratorType):
        return await _streamed(iterate_in_thread(value), show)
    if isinstance(value, AsyncIterator):
        return await _streamed(value, show)
    return to_parts(value)


async def _streamed(
    source: AsyncIterator[object], show: Callable[[str, object | None], Awaitable[None]]
) -> tuple[Part, ...]:
    """Show each item and join them: strings as they are, other values as JSON, each on a line of its own."""
    kept = Kept()
    after_value = False
    try:
        async for item in source:
            if isinstance(item, _PART):
                await show("", item)
                kept.add(item)
                after_value = False
                continue
            text = well_formed(as_text(item))
            if after_value or not (isinstance(item, str) or kept.at_line_start):
                kept.add_text("\n")
            await show(text, None if isinstance(item, str) else item)
            kept.add_text(text)
            after_value = not isinstance(item, str)
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()
    return kept.parts()
