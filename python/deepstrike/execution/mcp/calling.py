"""One tool call, as the client makes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.execution.mcp.content import to_result
from deepstrike.execution.mcp.faults import Malformed
from deepstrike.execution.mcp.words import plain
from deepstrike.kernel import validate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp import Client
    from mcp_types import CallToolResult

    from deepstrike.execution.mcp.catalogue import Offered
    from deepstrike.wire.message import ToolResult

LONGEST_PROGRESS: Final = 500


def tool_call(
    offered: Offered, args_text: str, notes: Sequence[str], emit: Callable[[str], None]
) -> Callable[[Client], Awaitable[ToolResult]]:
    """A call of the tool by the server's own name for it; a structured result that does not fit is a `Malformed`.
    `emit` gets its progress; `notes` follow its result."""

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
        emit(plain(message, LONGEST_PROGRESS) if message else share)

    async def call(client: Client) -> ToolResult:
        answer = await client.call_tool(offered.original, json.loads(args_text), progress_callback=progress)
        if offered.output and not answer.is_error:
            _check(answer, offered.output)
        return to_result(answer, notes)

    return call


def _check(answer: CallToolResult, schema: str) -> None:
    if answer.structured_content is None and "structured_content" not in answer.model_fields_set:
        raise Malformed("the server's result has no structured content, though it declares a schema for it")
    try:
        complaints = validate(schema, json.dumps(answer.structured_content))
    except ValueError as error:
        complaints = [f"it cannot be checked: {error}"]
    if complaints:
        raise Malformed(f"the server's structured content does not fit its own schema: {complaints[0]}")
