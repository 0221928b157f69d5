"""MCP planes against web servers that answer, but not as servers should."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from deepstrike.errors import DeepStrikeError

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKEN = "hunter2hunter2"
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n<p>Hi"
ELSEWHERE = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%d/mcp\r\nContent-Length: 0\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"


def status(code: int) -> bytes:
    return b"HTTP/1.1 %d Oh\r\nContent-Length: 0\r\n\r\n" % code


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A web server with one answer to everything, none for None. Gives its port and the requests that it got."""
    requests: list[bytes] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            requests.append(await reader.read(65536))
            if answer is None:
                await over.wait()
            else:
                writer.write(answer)
                for _ in range(20 if answer == ENDLESS else 0):
                    writer.write(b"100000\r\n" + b" " * 2**20 + b"\r\n")
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        over.set()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(401), "it refused us (HTTP 401); check the credentials in headers="),
        (status(403), "it refused us (HTTP 403); check the credentials in headers="),
        (status(404), "it answered HTTP 404"),
        (status(500), "it answered HTTP 500"),
        (HTML, "Unexpected content type: text/html"),
        (CUT, "RemoteProtocolError"),
        (ENDLESS, "the answer is longer than 16777216 bytes"),
        (None, "it did not answer within 1500 ms"),
    ],
    ids=["401", "403", "404", "500", "html", "cut", "endless", "silent"],
)
async def test_given_a_web_server_that_speaks_no_mcp_when_opened_then_the_error_says_what_it_did(
    answer: bytes | None, words: str
) -> None:
    before = asyncio.all_tasks()
    async with answering(answer) as (port, requests):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        plane = McpExecutionPlane(f"http://127.0.0.1:{port}/mcp", headers=headers, connect_timeout_ms=1500)
        with pytest.raises(DeepStrikeError) as caught:
            await plane.open()

    assert words in caught.value.message
    assert (caught.value.code, TOKEN in caught.value.message, TOKEN.encode() in requests[0]) == (
        "mcp_unavailable",
        False,
        True,
    )
    assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()


async def test_given_a_redirect_to_another_place_when_opened_then_no_header_goes_there() -> None:
    async with answering(status(200)) as (elsewhere, stolen), answering(ELSEWHERE % elsewhere) as (port, requests):
        plane = McpExecutionPlane(f"http://127.0.0.1:{port}/mcp", headers={"Authorization": f"Bearer {TOKEN}"})
        with pytest.raises(DeepStrikeError, match="not followed"):
            await plane.open()

    assert (bool(requests), stolen) == (True, [])
