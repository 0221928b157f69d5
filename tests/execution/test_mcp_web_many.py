"""MCP planes with many calls in flight at one web server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from mcp_calls import call
from mcp_raw_web import fine, raw_web

from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange

    from deepstrike.execution.mcp.elicitation import Elicitation

FINE = ToolResult((Text("fine"),))
MANY = 130


async def test_given_more_calls_than_a_pool_has_connections_when_they_answer_together_then_none_waits_for_another() -> (
    None
):
    came: list[Exchange] = []
    together = asyncio.Event()

    async def meets(exchange: Exchange) -> None:
        came.append(exchange)
        if len(came) == MANY:
            together.set()
        await together.wait()
        await fine(exchange)

    async with raw_web(meets=meets) as web, McpExecutionPlane(web.url, timeout_ms=10_000) as plane:
        met = await asyncio.gather(*(call(plane, "meets") for _ in range(MANY)))
        after = await call(plane, "ok")

    assert [*met, after] == [FINE] * (MANY + 1)


async def test_given_many_calls_that_each_ask_the_user_when_all_wait_for_answers_then_the_answers_find_a_way() -> None:
    answered: dict[str, asyncio.Event] = {}

    async def asks(exchange: Exchange) -> None:
        number = f"q{len(answered)}"
        answered[number] = asyncio.Event()
        fields = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
        question = {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": fields}
        await exchange.begin()
        exchange.writer.write(b"data: %s\n\n" % json.dumps(question).encode())
        await answered[number].wait()
        exchange.writer.write(b"data: %s\n\n" % exchange.encoded({"content": [{"type": "text", "text": "fine"}]}))
        exchange.writer.close()

    async def takes(exchange: Exchange) -> None:
        await exchange.respond(202)
        answered[exchange.message["id"]].set()

    def agree(_: Elicitation) -> bool:
        return True

    async with (
        raw_web("", asks=asks, POST=takes) as web,
        McpExecutionPlane(web.url, revision="2025-11-25", timeout_ms=10_000, on_elicitation=agree) as plane,
    ):
        asked = await asyncio.gather(*(call(plane, "asks") for _ in range(110)))

    assert ({part for result in asked for part in result.parts[:1]}, len(answered)) == ({Text("fine")}, 110)
