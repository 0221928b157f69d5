"""MCP planes against web servers that do not end what was cancelled: nothing of it is left open or read on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mcp_calls import call, until
from mcp_raw_web import fine, raw_web

from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange, RawWeb, Tool

FINE = ToolResult((Text("fine"),))
NOTE = b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}\n\n'


def plane_of(web: RawWeb, timeout_ms: int = 1000) -> McpExecutionPlane:
    return McpExecutionPlane(web.url, timeout_ms=timeout_ms, revision="2025-11-25")


async def hangs(exchange: Exchange) -> None:
    await exchange.until_closed()


async def hangs_in_its_answer(exchange: Exchange) -> None:
    await exchange.begin("application/json")
    exchange.writer.write(b"{")
    await exchange.until_closed()


async def hangs_in_a_stream(exchange: Exchange) -> None:
    await exchange.begin()
    exchange.writer.write(NOTE)
    await exchange.until_closed()


async def trickles(exchange: Exchange) -> None:
    await exchange.begin("application/json")
    while True:
        exchange.writer.write(b" ")
        await exchange.writer.drain()
        await asyncio.sleep(0.01)


async def floods_with_comments(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.flood(b": ping\n\n" * 1000)


async def floods_with_messages(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.flood(NOTE * 1000)


async def ends_early(exchange: Exchange) -> None:
    """With the promise to go on where it is asked again."""
    await exchange.begin()
    exchange.writer.write(b"id: 1\nretry: 10\ndata:\n\n")
    exchange.writer.close()


ENDLESS = [
    hangs,
    hangs_in_its_answer,
    hangs_in_a_stream,
    trickles,
    floods_with_comments,
    floods_with_messages,
    ends_early,
]


@pytest.mark.parametrize("tool", ENDLESS)
async def test_given_calls_that_time_out_when_the_server_goes_on_then_their_connections_and_tasks_end(
    tool: Tool,
) -> None:
    async with raw_web(endless=tool, GET=hangs_in_a_stream) as web, plane_of(web) as plane:
        assert await call(plane, "ok") == FINE
        before = len(asyncio.all_tasks()) - len(web.open)
        late = await asyncio.gather(*(call(plane, "endless") for _ in range(8)))
        await until(lambda: len(web.open) <= 2)
        await until(lambda: len(asyncio.all_tasks()) - len(web.open) <= before)
        after = await call(plane, "ok")

    assert ({result.error_kind for result in late}, after) == ({"timeout"}, FINE)
    assert web.called("notifications/cancelled") == 8


async def test_given_a_call_that_is_resumed_when_it_times_out_then_the_server_is_not_asked_again() -> None:
    async def resumed(exchange: Exchange) -> None:
        await (ends_early if "last-event-id" in exchange.headers else hangs)(exchange)

    async with raw_web("session", endless=ends_early, GET=resumed) as web, plane_of(web) as plane:
        late = await call(plane, "endless")
        asked = web.called("GET")
        await until(lambda: web.called("notifications/cancelled") == 1)
        at_most = web.called("GET") + 1
        await asyncio.sleep(0.3)

    assert (late.error_kind, asked > 2, web.called("GET") <= at_most) == ("timeout", True, True)


async def test_given_more_hung_calls_than_connections_when_they_have_timed_out_then_the_next_is_served() -> None:
    async with raw_web(endless=hangs) as web, plane_of(web) as plane:
        for _ in range(2):
            late = await asyncio.gather(*(call(plane, "endless") for _ in range(60)))
            assert {result.error_kind for result in late} == {"timeout"}
        await until(lambda: web.called("notifications/cancelled") == 120)
        await until(lambda: len(web.open) <= 20)  # which the client keeps for what comes

        assert await call(plane, "ok") == FINE


async def test_given_a_caller_that_is_cancelled_when_the_server_goes_on_then_the_connection_ends() -> None:
    async with raw_web(endless=floods_with_messages) as web, plane_of(web, 60_000) as plane:
        waiting = asyncio.ensure_future(call(plane, "endless"))
        await until(lambda: web.called("tools/call") == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(lambda: len(web.open) <= 1)

        assert (waiting.cancelled(), await call(plane, "ok")) == (True, FINE)


async def test_given_a_caller_that_is_cancelled_at_any_moment_when_it_is_gone_then_so_is_its_request() -> None:
    hanging: list[Exchange] = []

    async def hangs_and_counts(exchange: Exchange) -> None:
        hanging.append(exchange)
        await hangs(exchange)
        hanging.remove(exchange)

    async with raw_web(endless=hangs_and_counts) as web, plane_of(web, 60_000) as plane:
        for moments in range(80):
            waiting = asyncio.ensure_future(call(plane, "endless"))
            for _ in range(moments):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        begun = web.called("tools/call")
        await until(lambda: not hanging)

        assert (await call(plane, "ok"), begun > 0) == (FINE, True)


async def test_given_a_server_that_answers_nothing_any_more_when_calls_time_out_then_none_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deepstrike.execution.mcp.posts.NOTE_SECONDS", 0.2)
    deaf = {"notifications/cancelled": hangs, "endless": hangs}
    async with raw_web(**deaf) as web, plane_of(web) as plane:
        late = await asyncio.gather(*(call(plane, "endless") for _ in range(10)))
        await until(lambda: web.called("notifications/cancelled") == 10 and len(web.open) <= 1)
        after = await call(plane, "ok")

    assert ({result.error_kind for result in late}, after) == ({"timeout"}, FINE)


async def test_given_a_redirect_at_the_same_place_when_it_is_followed_then_that_can_be_given_up_too() -> None:
    async def moved(exchange: Exchange) -> None:
        if exchange.path == "/mcp":
            await exchange.respond(307, Location="/there")
        else:
            await (hangs if web.called("tools/call") > 2 else fine)(exchange)

    async with raw_web(moved=moved) as web, plane_of(web) as plane:
        followed, late = await call(plane, "moved"), await call(plane, "moved")
        await until(lambda: len(web.open) <= 1)

    assert (followed, late.error_kind) == (FINE, "timeout")
