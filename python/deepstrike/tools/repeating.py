"""Calls that are tried again: of tools that say so, where that changes nothing (`read`) or is safe (`idempotent`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from deepstrike.clock import current_clock
from deepstrike.errors import DeepStrikeError
from deepstrike.tools.context import Flag
from deepstrike.tools.running import run_tool
from deepstrike.tools.suspension import Misplaced
from deepstrike.wire.message import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.execution.base import Invocation
    from deepstrike.tools.definition import Tool

BASE_DELAY_SECONDS: Final = 0.5
MAX_DELAY_SECONDS: Final = 8.0
MAX_REASON: Final = 500


async def run_repeatedly(tool: Tool[..., object], invocation: Invocation) -> ToolResult:
    """As `run_tool`, and after a failure that may pass again, at most `tool.retries` times, with the same key.

    Such failures are exceptions and time-outs; of a `ToolError` or another error of ours, those that are `retryable`.
    The wait before the n-th repetition is 0.5·2ⁿ⁻¹ s, at most 8 s, by the run's clock; cancelling ends it at once. A
    tool that has asked something (`Suspend`) is not tried again.
    """
    if not tool.retries:
        return await run_tool(tool, invocation)
    for tried in range(1, tool.retries + 2):
        attempt = _Attempt(invocation)
        result = await run_tool(tool, attempt.invocation, attempt.raised)
        if tried > tool.retries or not attempt.may_pass(result):
            break
        delay = min(BASE_DELAY_SECONDS * 2.0 ** (tried - 1), MAX_DELAY_SECONDS)
        invocation.again(tried, round(delay * 1000), _text(result)[:MAX_REASON])
        await current_clock().sleep(delay)
    if tried == 1 or not result.error_kind:
        return result
    return ToolResult((Text(f"{_text(result)}\n[tried {tried} times]"),), result.error_kind)


class _Attempt:
    """One of them: what an earlier one still does, in a thread that could not be killed, is seen by nobody."""

    def __init__(self, whole: Invocation) -> None:
        over = Flag(whole.context._cancelled)
        self.raised: list[BaseException] = []
        self._asked = False

        def emit(text: str) -> None:
            if not over.is_set():
                whole.context.emit(text)

        async def show(delta: str, chunk: object | None) -> None:
            if over.is_set():
                raise asyncio.CancelledError
            await whole.show(delta, chunk)

        context = replace(whole.context, _cancelled=over, _emit=emit)
        self.invocation = replace(whole, context=context, show=show, suspend=self._asking(whole.suspend))

    def _asking(self, suspend: Callable[[object], Awaitable[object]]) -> Callable[[object], Awaitable[object]]:
        async def ask(payload: object) -> object:
            self._asked = True
            return await suspend(payload)

        return ask

    def may_pass(self, result: ToolResult) -> bool:
        """Whether the same call may succeed another time."""
        if self._asked or not result.error_kind:
            return False
        if not self.raised:
            return result.error_kind == "timeout"
        error = self.raised[-1]
        if isinstance(error, DeepStrikeError):
            return error.retryable
        return isinstance(error, Exception) and not isinstance(error, Misplaced)


def _text(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))
