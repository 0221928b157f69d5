"""A web server, byte by byte: its tools answer as a test says, and it knows who is connected."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Tool = Callable[["Exchange"], Awaitable[None]]

STREAM = "text/event-stream"


@dataclass
class Exchange:
    """One request and the way back."""

    verb: str
    path: str
    headers: dict[str, str]
    message: dict[str, Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def respond(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        """A whole answer."""
        lines = [f"HTTP/1.1 {status} Oh", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def result(self, result: object, **headers: str) -> None:
        """An answer of the protocol."""
        await self.respond(200, self.encoded(result), **headers)

    def encoded(self, result: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": self.message.get("id"), "result": result}).encode()

    async def begin(self, kind: str = STREAM) -> None:
        """An answer that lasts as long as the connection."""
        self.writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
        await self.writer.drain()

    async def until_closed(self) -> None:
        """Until the client has closed the connection."""
        await self.reader.read()

    async def flood(self, piece: bytes) -> None:
        """The same, without end, while the client reads."""
        while True:
            self.writer.write(piece)
            await self.writer.drain()


@dataclass
class RawWeb:
    """See above. A GET is refused unless there is a tool named GET."""

    tools: dict[str, Tool]
    session: str = ""
    listing: bytes = b""
    """The tools as JSON, in place of those that there are."""
    lists: Tool | None = None
    """Answers in place of that."""
    listed_in_a_stream: bool = False
    requests: list[Exchange] = field(default_factory=list)
    open: set[asyncio.StreamWriter] = field(default_factory=set)
    url: str = ""
    stop_listening: Callable[[], None] = lambda: None
    """Refuse new connections, and serve those that there are."""

    def called(self, method: str) -> int:
        """How many requests there were."""
        return sum(each.message.get("method", each.verb) == method for each in self.requests)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        try:
            while (exchange := await _read(reader, writer)) is not None:
                self.requests.append(exchange)
                await self._answer(exchange)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open.discard(writer)
            writer.close()

    async def _answer(self, exchange: Exchange) -> None:
        message = exchange.message
        session = {"mcp_session_id": self.session} if self.session else {}
        match message.get("method", exchange.verb):
            case "initialize":
                info: dict[str, object] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}}
                await exchange.result({"protocolVersion": "2025-11-25", **info}, **session)
            case "tools/list":
                if self.lists is not None:
                    await self.lists(exchange)
                    return
                if self.listing:
                    number = json.dumps(message["id"]).encode()
                    body = b'{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}' % (number, self.listing)
                    if self.listed_in_a_stream:
                        note = (
                            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
                        )
                        body = b"id: 1\ndata: %s\n\n: comment\nevent: message\ndata: %s\n\n" % (note, body)
                    await exchange.respond(200, body, STREAM if self.listed_in_a_stream else "application/json")
                    return
                listed = [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools if name.islower()]
                await exchange.result({"tools": listed, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
            case "tools/call":
                await self.tools[message["params"]["name"]](exchange)
            case method if method in self.tools:
                await self.tools[method](exchange)
            case _:
                await exchange.respond(202 if exchange.verb == "POST" else 405)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    head = await reader.readline()
    if not head:
        return None
    headers = {}
    while line := (await reader.readline()).strip().decode():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    verb, path, _ = head.decode().split()
    return Exchange(verb, path, headers, json.loads(body) if body else {}, reader, writer)


@asynccontextmanager
async def raw_web(session: str = "", /, **tools: Tool) -> AsyncIterator[RawWeb]:
    """The server, while it serves. Its tool `ok` answers `fine`."""
    web = RawWeb({"ok": fine, **tools}, session)
    server = await asyncio.start_server(web.connected, "127.0.0.1", 0, limit=2**20)
    web.stop_listening = server.close
    web.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield web
    finally:
        server.close()
        for writer in list(web.open):
            writer.transport.abort()
        await server.wait_closed()


async def fine(exchange: Exchange) -> None:
    await exchange.result({"resultType": "complete", "content": [{"type": "text", "text": "fine"}]})
