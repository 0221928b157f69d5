"""MCP planes against web servers that break single requests: no other call ends with them."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import TYPE_CHECKING

import pytest
from mcp_calls import call, text_of, until
from mcp_raw_web import fine, raw_web

from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange, RawWeb, Tool

    from deepstrike.execution.mcp.plane import Revision

FINE = ToolResult((Text("fine"),))
MAYBE = "the call may have taken effect"
PART = b"HTTP/1.1 200 Oh\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
ERROR = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "no disk"}}).encode()


def reset(exchange: Exchange) -> None:
    """End the connection as a process that dies, or a firewall, does."""
    connection = exchange.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.writer.transport.abort()


async def resets(exchange: Exchange) -> None:
    reset(exchange)


async def closes(exchange: Exchange) -> None:
    exchange.writer.close()


async def half(exchange: Exchange) -> None:
    exchange.writer.write(PART)
    exchange.writer.close()


async def half_and_a_reset(exchange: Exchange) -> None:
    exchange.writer.write(PART)
    await exchange.writer.drain()
    await asyncio.sleep(0.05)  # so that it is there before the reset, which takes back what was not read
    reset(exchange)


async def half_a_chunk(exchange: Exchange) -> None:
    await exchange.begin("application/json\r\nTransfer-Encoding: chunked")
    exchange.writer.write(b"100\r\n{")
    exchange.writer.close()


async def half_a_stream(exchange: Exchange) -> None:
    await exchange.begin()
    exchange.writer.write(b"data: {")
    exchange.writer.close()


async def half_a_message(exchange: Exchange) -> None:
    await exchange.respond(200, exchange.encoded({"content": []})[:-5])


async def half_a_message_in_a_stream(exchange: Exchange) -> None:
    await exchange.begin()
    exchange.writer.write(b"data: {\n\n")
    exchange.writer.close()


async def no_http(exchange: Exchange) -> None:
    exchange.writer.write(b"nothing of the kind\r\n\r\n")
    exchange.writer.close()


async def fails(exchange: Exchange) -> None:
    await exchange.respond(500, b"<p>Oh", "text/html")


async def is_behind_a_gateway(exchange: Exchange) -> None:
    await exchange.respond(502, b'{"oh": 1}')


async def is_too_long(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 Oh\r\nContent-Type: application/json\r\nContent-Length: 20000000\r\n\r\n")
    exchange.writer.write(b" " * 20_000_000)
    await exchange.writer.drain()


BROKEN = [
    resets,
    closes,
    half,
    half_and_a_reset,
    half_a_chunk,
    half_a_stream,
    half_a_message,
    half_a_message_in_a_stream,
    no_http,
    fails,
    is_behind_a_gateway,
    is_too_long,
]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("tool", BROKEN)
async def test_given_calls_in_flight_when_the_request_of_one_breaks_then_the_others_finish_and_its_effect_is_unknown(
    tool: Tool, revision: Revision
) -> None:
    over = asyncio.Event()

    async def lasts(exchange: Exchange) -> None:
        await over.wait()
        await fine(exchange)

    session = "session" if revision == "2025-11-25" else ""
    async with (
        raw_web(session, breaks=tool, lasts=lasts) as web,
        McpExecutionPlane(web.url, revision=revision, timeout_ms=10_000) as plane,
    ):
        others = [asyncio.ensure_future(call(plane, "lasts")) for _ in range(3)]
        await until(lambda: web.called("tools/call") == 3)
        broken = await call(plane, "breaks")
        during = await call(plane, "ok")
        over.set()
        finished = await asyncio.gather(*others)

    assert (broken.error_kind, text_of(broken).endswith(MAYBE), during, finished) == (
        "exception",
        True,
        FINE,
        [FINE] * 3,
    )
    assert (web.called("tools/list"), web.called("tools/call")) == (1, 5)  # nothing was connected or called again


async def test_given_an_error_of_the_protocol_when_its_status_is_one_of_failure_then_it_is_the_servers_word() -> None:
    async def refuses(exchange: Exchange) -> None:
        await exchange.respond(500, ERROR)

    async with raw_web(refuses=refuses) as web, McpExecutionPlane(web.url, revision="2025-11-25") as plane:
        refused = await call(plane, "refuses")

    assert refused == ToolResult((Text("the server reports: no disk (code -32001)"),), "tool_error")


@pytest.mark.parametrize("breaks", [resets, closes, fails])
async def test_given_word_of_a_cancellation_when_its_request_breaks_then_nothing_else_does(breaks: Tool) -> None:
    over = asyncio.Event()

    async def lasts(exchange: Exchange) -> None:
        await over.wait()
        await fine(exchange)

    async def hangs(exchange: Exchange) -> None:
        await exchange.until_closed()

    tools = {"notifications/cancelled": breaks, "lasts": lasts, "hangs": hangs}
    async with raw_web(**tools) as web, McpExecutionPlane(web.url, revision="2025-11-25") as plane:
        other = asyncio.ensure_future(call(plane, "lasts"))
        given_up = asyncio.ensure_future(call(plane, "hangs"))
        await until(lambda: web.called("tools/call") == 2)
        given_up.cancel()
        await until(lambda: web.called("notifications/cancelled") == 1)
        during = await call(plane, "ok")
        over.set()
        finished = await other

    assert (during, finished, web.called("initialize")) == (FINE, FINE, 1)


async def test_given_a_server_that_takes_no_more_connections_when_calls_are_in_flight_then_they_finish() -> None:
    over = asyncio.Event()

    async def lasts(exchange: Exchange) -> None:
        await over.wait()
        await fine(exchange)

    async with raw_web(lasts=lasts) as web, McpExecutionPlane(web.url, revision="2025-11-25") as plane:
        other = asyncio.ensure_future(call(plane, "lasts"))
        await until(lambda: web.called("tools/call") == 1)
        await take_no_more(web, web.requests[-1])
        refused = await call(plane, "ok")
        over.set()
        finished = await other
        await take_no_more(web)
        alone = await call(plane, "ok")

    assert (refused.error_kind, text_of(refused).endswith("; the server has not seen the call")) == ("exception", True)
    assert (finished, alone.error_kind, "cannot be used: ConnectError" in text_of(alone)) == (FINE, "exception", True)


async def take_no_more(web: RawWeb, *but: Exchange) -> None:
    """Refuse new connections, and end those that there are but for these."""
    web.stop_listening()
    for writer in web.open - {exchange.writer for exchange in but}:
        writer.close()
    await until(lambda: len(web.open) == len(but))


async def test_given_a_session_that_is_forgotten_when_the_next_call_is_refused_then_it_is_made_in_a_new_one() -> None:
    async def forgets(exchange: Exchange) -> None:
        known = exchange.headers["mcp-session-id"] == web.session
        await (fine(exchange) if known else exchange.respond(404))

    async with raw_web("first", knows=forgets) as web, McpExecutionPlane(web.url, revision="2025-11-25") as plane:
        before = await call(plane, "knows")
        web.session = "second"
        after = await call(plane, "knows")

    assert (before, after, web.called("initialize")) == (FINE, FINE, 2)


async def test_given_a_broken_request_when_connections_are_counted_then_none_is_left_in_use() -> None:
    async with raw_web(half=half, long=is_too_long) as web, McpExecutionPlane(web.url, revision="2025-11-25") as plane:
        for name in ("half", "long"):
            await asyncio.gather(*(call(plane, name) for _ in range(5)))
        await until(lambda: len(web.open) <= 1)
        assert await call(plane, "ok") == FINE


async def test_given_a_refused_session_when_another_call_has_an_error_of_the_server_then_it_is_not_made_again() -> None:
    over = asyncio.Event()

    async def forgets(exchange: Exchange) -> None:
        if exchange.headers["mcp-session-id"] == "second":
            await fine(exchange)
            return
        await exchange.respond(404)
        over.set()

    async def refuses(exchange: Exchange) -> None:
        await over.wait()
        await exchange.respond(200, ERROR.replace(b"null", str(exchange.message["id"]).encode()))

    async with raw_web("first", forgets=forgets, refuses=refuses) as web:
        plane = McpExecutionPlane(web.url, revision="2025-11-25")
        await plane.open()
        web.session = "second"
        other = asyncio.ensure_future(call(plane, "refuses"))
        await until(lambda: web.called("tools/call") == 1)
        again = await call(plane, "forgets")
        refused = await other
        await plane.aclose()

    assert (again, refused.error_kind in ("exception", "tool_error"), web.called("tools/call")) == (FINE, True, 3)
