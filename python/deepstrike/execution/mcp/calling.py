"""One tool call, as the client makes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.execution.mcp.content import to_result
from deepstrike.execution.mcp.words import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp import Client

    from deepstrike.wire.message import ToolResult

LONGEST_PROGRESS: Final = 500


def tool_call(
    original: str, args_text: str, notes: Sequence[str], emit: Callable[[str], None]
) -> Callable[[Client], Awaitable[ToolResult]]:
    """A call of the tool by the server's own name for it. `emit` gets its progress; `notes` follow its result."""

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
        emit(plain(message, LONGEST_PROGRESS) if message else share)

    async def call(client: Client) -> ToolResult:
        answer = await client.call_tool(original, json.loads(args_text), progress_callback=progress)
        return to_result(answer, notes)

    return call
