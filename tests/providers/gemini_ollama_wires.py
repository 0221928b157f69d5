"""What the tests of Gemini and Ollama share: calls of their codecs, and a service on the loopback address."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wires import put_together

from deepstrike.providers.base import Memo, ModelInfo, ModelRequest
from deepstrike.providers.dialects.base import Asked
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.wire.message import Text, UserBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepstrike.providers.base import ModelEvent, OutputSchema
    from deepstrike.providers.dialects.base import Dialect
    from deepstrike.wire.message import ToolSpec, Turn

HELLO = UserBlock((Text("hi"),))


def asked(
    turns: Sequence[Turn] = (HELLO,),
    *,
    model: str,
    source: str,
    fields: Mapping[str, object] | None = None,
    extensions: Mapping[str, object] | None = None,
    tools: tuple[ToolSpec, ...] = (),
    stable: str = "",
    knowledge: str = "",
    output: OutputSchema | None = None,
    limit: int | None = None,
    window: int = 32_000,
    memo: Memo | None = None,
) -> Asked:
    """A call as a dialect sees it."""
    request = ModelRequest(
        stable, knowledge, turns, tools, extensions or {}, memo=memo or Memo(), output=output, window=window
    )
    return Asked(request, ModelInfo(model), source, fields or {}, limit, Faults(Mask(["sk-secret-1"])))


def events_of(dialect: Dialect, call: Asked, pieces: Iterable[bytes]) -> list[ModelEvent]:
    """The events of a body that arrives in these pieces."""
    reader, decoder = dialect.reader(), dialect.decoder(call)
    out: list[ModelEvent] = []
    for piece in pieces:
        out += decoder.feed(reader.push(piece))
    for payload in reader.close():
        out += decoder.feed_last(payload)
    return out + decoder.end()


def read(dialect: Dialect, call: Asked, body: bytes) -> list[ModelEvent]:
    """The events of `body`, the same byte by byte and at every cut into two."""
    whole = events_of(dialect, call, [body])
    said = put_together(whole)
    assert put_together(events_of(dialect, call, [body[i : i + 1] for i in range(len(body))])) == said
    for cut in range(1, len(body)):
        assert put_together(events_of(dialect, call, [body[:cut], body[cut:]])) == said, f"cut at {cut}"
    return whole


@dataclass(frozen=True)
class Sent:
    """An answer to give: these writes, then a proper end of the body."""

    writes: Sequence[bytes]
    status: int = 200
    kind: str = "text/event-stream"


class Service:
    """A model service on the loopback address that gives the n-th request the n-th answer and keeps what it is sent."""

    def __init__(self, *answers: Sent) -> None:
        self._answers = list(answers)
        self.paths: list[str] = []
        self.headers: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    async def __aenter__(self) -> Service:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", 0, limit=2**24)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *reason: object) -> None:
        self._server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length:")[2].split("\r\n")[0])
            self.paths.append(head.split(" ")[1])
            self.headers.append(head.lower())
            self.bodies.append(json.loads(await reader.readexactly(length)))
            await self._answer(writer, self._answers.pop(0))
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, sent: Sent) -> None:
        lines = f"HTTP/1.1 {sent.status} Scripted\r\ncontent-type: {sent.kind}\r\nconnection: close\r\n"
        writer.write(lines.encode() + b"transfer-encoding: chunked\r\n\r\n")
        for write in sent.writes:
            writer.write(b"%x\r\n%b\r\n" % (len(write), write))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
