"""MCP planes against web servers that compress what was not to be compressed: a few bytes may fill the memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import pytest
from mcp_calls import call, text_of
from mcp_raw_web import STREAM, raw_web

from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange, Tool

FINE = ToolResult((Text("fine"),))
REFUSED = "the answer is compressed ('gzip'), and we asked for one that is not"
MUCH = 100_000_000


def bomb(answer: bytes) -> bytes:
    """`answer`, with spaces before its end that are few bytes while compressed."""
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    spaces = b" " * (MUCH // 100)
    return b"".join([*map(packer.compress, [answer[:-1], *[spaces] * 100, answer[-1:]]), packer.flush()])


async def bursts(exchange: Exchange) -> None:
    body = bomb(exchange.encoded({"content": []}))
    await exchange.respond(200, body, Content_Encoding="gzip")


async def bursts_in_a_stream(exchange: Exchange) -> None:
    event = b"data: %s" % exchange.encoded({"content": []})
    await exchange.respond(200, bomb(event), STREAM, content_encoding="GZIP")


async def twice(exchange: Exchange) -> None:
    body = gzip.compress(bomb(exchange.encoded({"content": []})))
    await exchange.respond(200, body, Content_Encoding="gzip, gzip")


async def broken(exchange: Exchange) -> None:
    await exchange.respond(200, b"no gzip at all", Content_Encoding="gzip")


async def bursts_with_an_error(exchange: Exchange) -> None:
    await exchange.respond(500, bomb(exchange.encoded({})), Content_Encoding="gzip")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (bursts, REFUSED),
        (bursts_in_a_stream, REFUSED),
        (twice, "the answer is compressed ('gzip, gzip'), and we asked for one that is not"),
        (broken, REFUSED),
        (bursts_with_an_error, REFUSED),
    ],
)
async def test_given_a_compressed_answer_when_called_then_it_is_an_error_of_the_call_and_takes_no_memory(
    tool: Tool, words: str
) -> None:
    async with raw_web(bomb=tool) as web, McpExecutionPlane(web.url, headers={"accept-ENCODING": "gzip"}) as plane:
        tracemalloc.start()
        try:
            refused = await call(plane, "bomb")
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        after = await call(plane, "ok")

    assert (refused.error_kind in ("tool_error", "exception"), words in text_of(refused), after) == (True, True, FINE)
    assert most < MUCH // 4
    assert {each.headers["accept-encoding"] for each in web.requests} == {"identity"}


async def test_given_an_answer_that_says_that_it_is_not_compressed_when_called_then_it_is_read() -> None:
    async def plain(exchange: Exchange) -> None:
        await exchange.result({"content": [{"type": "text", "text": "fine"}]}, Content_Encoding="Identity")

    async with raw_web(plain=plain) as web, McpExecutionPlane(web.url) as plane:
        assert await call(plane, "plain") == FINE
