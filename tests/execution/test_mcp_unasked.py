"""MCP planes against servers that go on sending though nothing is asked of them: that ends, and no call with it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest
from mcp_calls import HERE, call, children, until
from mcp_raw_web import raw_web

from deepstrike.clock import use_clock
from deepstrike.testing import ManualClock
from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp import unasked
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange, Tool

FLOOD = [sys.executable, "-I", "-S", str(HERE / "mcp_flood_server.py")]
FINE = ToolResult((Text("fine"),))
NOTE = b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}\n\n'


async def comments(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.flood(b": ping\n\n" * 1000)


async def messages(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.flood(NOTE * 1000)


async def one_line(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.flood(b"x" * 10_000)


async def ends_at_once(exchange: Exchange) -> None:
    await exchange.begin()
    exchange.writer.write(b"retry: 0\nid: 1\ndata:\n\n")
    exchange.writer.close()


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a test does not take long."""
    monkeypatch.setattr(unasked, "AT_ONCE", 2**20)


@pytest.mark.parametrize("tool", ["blanks", "noise", "notes"])
async def test_given_a_process_that_floods_when_its_call_is_over_then_it_is_ended_and_a_new_one_serves(
    tool: str,
) -> None:
    before = children()
    async with McpExecutionPlane(FLOOD, revision="2025-11-25", timeout_ms=1000) as plane:
        started = children() - before
        late = await call(plane, tool)
        await until(lambda: not started & children())
        after = await call(plane, "ok")

    assert (len(started), late.error_kind, after) == (1, "timeout", FINE)


@pytest.mark.parametrize(("flood", "times"), [(comments, 1), (messages, 1), (one_line, 1), (ends_at_once, 4)])
async def test_given_a_stream_for_news_that_floods_when_it_is_too_much_then_it_is_left_and_calls_go_on(
    flood: Tool, times: int
) -> None:
    over: list[bool] = []

    async def news(exchange: Exchange) -> None:
        try:
            await flood(exchange)
        finally:
            over.append(True)

    async with (
        raw_web("session", GET=news) as web,
        McpExecutionPlane(web.url, revision="2025-11-25", timeout_ms=5000) as plane,
    ):
        await until(lambda: len(over) == web.called("GET") >= times)
        during = await call(plane, "ok")
        await asyncio.sleep(0.5)

    assert (during, times <= web.called("GET") < 10) == (FINE, True)


@pytest.mark.parametrize("flood", [comments, messages])
async def test_given_a_subscription_that_floods_when_it_is_too_much_then_it_is_left_and_calls_go_on(
    flood: Tool,
) -> None:
    over: list[bool] = []

    async def news(exchange: Exchange) -> None:
        try:
            await flood(exchange)
        finally:
            over.append(True)

    tools = {"subscriptions/listen": news}
    async with (
        raw_web("", **tools) as web,
        McpExecutionPlane(web.url, revision="2026-07-28", timeout_ms=5000) as plane,
    ):
        await until(lambda: over == [True])
        assert await call(plane, "ok") == FINE


async def test_given_what_is_unasked_when_time_passes_then_there_may_be_more_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unasked, "A_SECOND", 1000)
    clock = ManualClock()
    with use_clock(clock):
        bound = unasked.Unasked()
        assert [bound.pay(2**20), bound.pay(1)] == [True, False]
        await clock.advance(1)
        assert [bound.take(b"x" * 900), bound.take(b"x" * 100)] == [True, False]
        await clock.advance(10_000)
        assert [bound.pay(2**20), bound.take(b"")] == [True, True]


def test_given_something_asked_when_it_is_settled_then_what_comes_counts_again() -> None:
    with use_clock(ManualClock()):
        bound = unasked.Unasked()
        bound.ask(7)
        bound.ask("q")
        asked = [bound.pay(2**30)]
        bound.settle("7")
        asked += [bound.pay(2**30)]
        bound.settle("q")

        assert [*asked, bound.pay(2**20), bound.take(b"\n")] == [True, True, True, False]
