"""MCP planes against servers whose lists of tools are too much: the rest of them is served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mcp_calls import call, text_of
from mcp_raw_web import raw_web

from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange

FINE = ToolResult((Text("fine"),))
OK = {"name": "ok", "inputSchema": {"type": "object"}}


def promising(**properties: object) -> bytes:
    """A list with a tool that promises results of this form."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return json.dumps([OK, {**OK, "name": "promises", "outputSchema": schema}]).encode()


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"structuredContent": {"a": "aaaa"}}, ""),
        ({"structuredContent": {"a": "a" * 40 + "!"}}, "does not fit its own schema: /a"),
        ({"structuredContent": {}}, "does not fit its own schema"),
        ({}, "has no structured content, though it declares a schema for it; the call may have taken effect"),
        ({"isError": True}, "without a word"),
    ],
)
async def test_given_a_form_for_results_with_a_costly_pattern_when_called_then_results_are_checked_within_a_bound(
    result: dict[str, object], words: str
) -> None:
    async def promises(exchange: Exchange) -> None:
        await exchange.result({"content": [], **result})

    async with raw_web(promises=promises) as web:
        web.listing = promising(a={"type": "string", "pattern": "^(a+)+$"})
        async with McpExecutionPlane(web.url, revision="2025-11-25") as plane:
            done = await call(plane, "promises")
            after = await call(plane, "ok")

    assert (bool(done.error_kind), words in text_of(done), after) == (bool(words), True, FINE)
