"""Running one tool call: every failure becomes a result, and only a real cancellation gets out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from inspect import isawaitable
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from deepstrike.clock import current_clock
from deepstrike.text import well_formed
from deepstrike.tools.allowance import Allowance
from deepstrike.tools.arguments import INVALID, InvalidArguments
from deepstrike.tools.failures import failure, failure_of
from deepstrike.tools.results import Kept, as_text, to_parts
from deepstrike.tools.suspension import Misplaced, Parked, Suspend
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

_strays: set[asyncio.Task[None]] = set()


async def run_tool(
    tool: Tool[..., object], invocation: Invocation, raised: list[BaseException] | None = None
) -> ToolResult:
    """Run the call with validated arguments. Every failure is a result with an `error_kind`.

    What the tool raised is put into `raised`.

    `CancelledError` gets out only if the caller's task was asked to cancel during the call; one that the tool itself
    raises is an error result. So are `SystemExit` and `GeneratorExit`: a tool cannot end the program.
    `KeyboardInterrupt` gets out, and so does `Parked`, which closes a tool at its question. A tool that returns gives
    its value: requests to cancel that it left are taken back.
    """
    if tool.timeout_ms is not None or _CANNOT_ASK:
        return await _in_own_task(tool, invocation, raised)
    before = _cancel_requests()
    try:
        result = await _attempt(tool, invocation, raised)
    except asyncio.CancelledError as error:
        if _cancel_requests() <= before:
            return failure_of(error)
        # The tool may have asked for it itself. The caller knows, and judges before the flag says that nobody waits.
        asyncio.get_running_loop().call_soon(invocation.context._cancelled.set)
        raise
    if _cancel_requests() > before:
        await _take_back(before)
    return result


async def _take_back(before: int) -> None:
    """Undo the requests to cancel above `before`: they would end the caller at its next await, or mislead its calls.

    Raises `CancelledError` if another one comes meanwhile.
    """
    if sys.version_info >= (3, 11):
        task, left = asyncio.current_task(), _cancel_requests()
        try:
            await asyncio.sleep(0)  # one that was not delivered yet arrives here
        except asyncio.CancelledError:
            if _cancel_requests() > left:
                raise
        while task is not None and task.cancelling() > before:
            task.uncancel()


def _cancel_requests() -> int:
    if sys.version_info >= (3, 11):
        task = asyncio.current_task()
        return task.cancelling() if task is not None else 0
    else:  # noqa: RET505  (mypy takes either branch by the version that it checks for)
        return 0


async def _in_own_task(
    tool: Tool[..., object], invocation: Invocation, raised: list[BaseException] | None
) -> ToolResult:
    """With a task of its own the tool can be stopped, and left alone if it does not stop."""
    limit = None if tool.timeout_ms is None else tool.timeout_ms / 1000
    outcome: list[ToolResult] = []  # a task that has asked to cancel itself loses what it returns

    async def keep() -> None:
        outcome.append(await _attempt(tool, replace(invocation, suspend=allowance.apart(invocation.suspend)), raised))

    attempt = asyncio.ensure_future(keep())
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    attempt.add_done_callback(lambda _: _open(over))
    expired = False

    def expire() -> None:
        nonlocal expired
        if not attempt.done():
            expired = True
            _stop(attempt, invocation, over)

    allowance = Allowance(limit, expire)
    try:
        await over
    except asyncio.CancelledError:
        await _stopped(attempt, invocation)
        raise
    finally:
        allowance.stop()
    if expired:
        return failure(
            "timeout",
            f"{tool.name} did not finish within {tool.timeout_ms} ms and was stopped; it may have taken effect",
        )
    if not outcome and not attempt.cancelled():
        attempt.result()  # raises what gets out
    return outcome[0] if outcome else failure_of(asyncio.CancelledError())


def _open(gate: asyncio.Future[None]) -> None:
    if not gate.done():
        gate.set_result(None)


def _stop(attempt: asyncio.Task[None], invocation: Invocation, over: asyncio.Future[None]) -> None:
    """Cancel the attempt and open the gate when it has ended, or after the grace."""
    invocation.context._cancelled.set()
    attempt.cancel()
    _strays.add(attempt)
    attempt.add_done_callback(_forget)
    timer = current_clock().call_later(GRACE_SECONDS, lambda: _open(over))
    attempt.add_done_callback(lambda _: timer.cancel())


def _forget(attempt: asyncio.Task[None]) -> None:
    _strays.discard(attempt)
    if not attempt.cancelled():
        attempt.exception()  # its late outcome is fenced off; looking at it keeps asyncio from reporting it


async def _stopped(attempt: asyncio.Task[None], invocation: Invocation) -> None:
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    attempt.add_done_callback(lambda _: _open(over))
    _stop(attempt, invocation, over)
    await over


async def _attempt(tool: Tool[..., object], invocation: Invocation, raised: list[BaseException] | None) -> ToolResult:
    task = asyncio.current_task()
    try:
        try:
            positional, named = tool.bind(invocation.args_text, invocation.context)
        except InvalidArguments as refused:
            return failure(INVALID, str(refused))
        if tool.on_loop:
            value = tool.function(*positional, **named)
            if type(value) is CoroutineType:  # the common case; what it returns may still be something to await
                value = await value
        else:
            value = await run_in_thread(partial(tool.function, *positional, **named))
        parts = to_parts(value) if isinstance(value, str) else await _content(value, invocation)
        return ToolResult(parts=parts)
    except (asyncio.CancelledError, KeyboardInterrupt, Parked):
        raise
    except BaseException as error:
        if isinstance(error, GeneratorExit) and _running_task() is not task:
            raise  # not the tool's own: this coroutine is being closed, from outside of its task
        if raised is not None:
            raised.append(error)
        return failure_of(error)


def _running_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


async def _content(value: object, invocation: Invocation) -> tuple[Part, ...]:
    """The value as content, after awaiting what can be awaited and streaming what yields."""
    if isawaitable(value):
        value = await value
    if isinstance(value, GeneratorType):
        return await _streamed(_numb(iterate_in_thread(value)), invocation.show)
    if isinstance(value, AsyncGenerator):
        return await _streamed(_answering(value, invocation.suspend), invocation.show)
    if isinstance(value, AsyncIterator):
        return await _streamed(_numb(value), invocation.show)
    if isinstance(value, Suspend):
        raise Misplaced
    return to_parts(value)


async def _answering(
    source: AsyncGenerator[object, object], suspend: Callable[[object], Awaitable[object]]
) -> AsyncGenerator[object, None]:
    """The items of `source` but its questions, whose answers are sent back into it."""
    answer: object = None
    try:
        while True:
            try:
                item = await source.asend(answer)
            except StopAsyncIteration:
                return
            answer = None
            if isinstance(item, Suspend):
                answer = await suspend(item.payload)
            else:
                yield item
    finally:
        await source.aclose()


async def _numb(source: AsyncIterator[object]) -> AsyncGenerator[object, None]:
    """The items of `source`, into which nothing can be sent. Raises `Misplaced` for a question."""
    try:
        async for item in source:
            if isinstance(item, Suspend):
                raise Misplaced
            yield item
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


async def _streamed(
    source: AsyncGenerator[object, None], show: Callable[[str, object | None], Awaitable[None]]
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
        await source.aclose()
    return kept.parts()
