"""The floors: hand-written agent loops without any framework."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from bench.workload import (
    API_KEY,
    CHAT_TOOLS,
    MODEL,
    add,
    arguments,
    chat_history,
    chat_messages,
    compact,
    turn_after,
)

if TYPE_CHECKING:
    from bench.contestant import OnText, OnTurn, Run

Rows = list[dict[str, object]]
Send = Callable[[bytes], AsyncIterator[bytes]]


def one_call(call_id: str, name: str, args: str) -> dict[str, object]:
    """A tool call as chat messages carry it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": args}}


class Bare:
    """asyncio, a list of messages, a scripted model, the tool: the least that is still an agent loop."""

    def over_http(self, base_url: str) -> Run:
        raise NotImplementedError

    async def behind_history(self, base_url: str) -> Run:
        raise NotImplementedError

    async def from_history(self, base_url: str) -> Callable[[], Awaitable[Run]]:
        raise NotImplementedError

    def decoded(self, pieces: list[bytes]) -> int:
        raise NotImplementedError

    def in_process(self, turns: int, said: list[str], sleep: float = 0.0, on_turn: OnTurn | None = None) -> Run:
        async def model(messages: Rows) -> AsyncIterator[tuple[str, str]]:
            last = messages[-1].get("tool_call_id")
            turn = turn_after(last if isinstance(last, str) else None)
            if on_turn:
                on_turn(turn)
            if sleep:
                await asyncio.sleep(sleep)
            if turn < turns:
                yield f"call_{turn}", arguments(turn)
            else:
                for piece in said:
                    yield "", piece

        return lambda on_text: bare_loop(model, on_text)


async def bare_loop(model: Callable[[Rows], AsyncIterator[tuple[str, str]]], on_text: OnText | None) -> str:
    """Ask, run what was asked for, ask again."""
    messages = chat_messages([])
    while True:
        text, calls = [], []
        async for call_id, value in model(messages):
            if call_id:
                calls.append((call_id, value))
                continue
            text.append(value)
            if on_text:
                on_text(value)
        if not calls:
            return "".join(text)
        asked = [one_call(call_id, "add", args) for call_id, args in calls]
        messages.append({"role": "assistant", "content": "".join(text) or None, "tool_calls": asked})
        for call_id, args in calls:
            result = await add(**json.loads(args))
            messages.append({"role": "tool", "tool_call_id": call_id, "content": result})


class OverHttp:
    """The same loop over an HTTP client: each request is encoded whole, each line of the stream parsed."""

    def sender(self, base_url: str) -> Send:
        raise NotImplementedError

    def in_process(self, turns: int, said: list[str], sleep: float = 0.0, on_turn: OnTurn | None = None) -> Run:
        raise NotImplementedError

    def over_http(self, base_url: str) -> Run:
        return self.loop(self.sender(base_url), [])

    async def behind_history(self, base_url: str) -> Run:
        return self.loop(self.sender(base_url), chat_history())

    async def from_history(self, base_url: str) -> Callable[[], Awaitable[Run]]:
        """The messages as they stand in memory: what a floor that stores nothing has to read is nothing."""
        run = await self.behind_history(base_url)

        async def fresh() -> Run:
            return run

        return fresh

    def decoded(self, pieces: list[bytes]) -> int:
        deltas, rest = 0, b""
        for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    deltas += bool(choices and choices[0]["delta"].get("content"))
        return deltas

    def loop(self, send: Send, history: Rows) -> Run:
        async def run(on_text: OnText | None) -> str:
            messages = chat_messages(history)
            while True:
                text, calls = await self.ask(send, messages, on_text)
                if not calls:
                    return text
                asked = [one_call(call["id"], call["name"], call["arguments"]) for call in calls]
                messages.append({"role": "assistant", "content": text or None, "tool_calls": asked})
                for call in calls:
                    result = await add(**json.loads(call["arguments"]))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

        return run

    async def ask(self, send: Send, messages: Rows, on_text: OnText | None) -> tuple[str, list[dict[str, str]]]:
        body = {"model": MODEL, "messages": messages, "tools": CHAT_TOOLS, "stream": True}
        text: list[str] = []
        calls: dict[int, dict[str, str]] = {}
        async for line in send(compact({**body, "stream_options": {"include_usage": True}})):
            if not line.startswith(b"data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                delta = choice["delta"]
                if piece := delta.get("content"):
                    text.append(piece)
                    if on_text:
                        on_text(piece)
                for part in delta.get("tool_calls", ()):
                    call = calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
                    call["id"] += part.get("id", "")
                    call["name"] += part["function"].get("name", "")
                    call["arguments"] += part["function"]["arguments"]
        return "".join(text), list(calls.values())


class Aiohttp(OverHttp):
    """aiohttp's client and nothing else."""

    def sender(self, base_url: str) -> Send:
        import aiohttp

        session: list[aiohttp.ClientSession] = []
        headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}

        async def send(body: bytes) -> AsyncIterator[bytes]:
            if not session:
                session.append(aiohttp.ClientSession())
            async with session[0].post(f"{base_url}/chat/completions", data=body, headers=headers) as response:
                rest = b""
                async for part in response.content.iter_any():
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        yield line

        return send


class Wire(asyncio.Protocol):
    """The client's end of a connection: bytes gather, one reader waits."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.waiter: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.waiter and not self.waiter.done():
            self.waiter.set_result(None)

    async def until(self, mark: bytes) -> bytes:
        """Take the bytes up to and with `mark`."""
        while (end := self.buffer.find(mark)) < 0:
            await self.more()
        return self.cut(end + len(mark))

    async def take(self, size: int) -> bytes:
        """Take so many bytes."""
        while len(self.buffer) < size:
            await self.more()
        return self.cut(size)

    def cut(self, size: int) -> bytes:
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    async def more(self) -> None:
        self.waiter = asyncio.get_running_loop().create_future()
        await self.waiter


class RawAsyncio(OverHttp):
    """HTTP/1.1 by hand on an asyncio protocol, keep-alive, chunked."""

    def sender(self, base_url: str) -> Send:
        host, _, path = base_url.removeprefix("http://").partition("/")
        name, _, port = host.partition(":")
        head = f"POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {API_KEY}\r\n"
        wires: list[Wire] = []

        async def send(body: bytes) -> AsyncIterator[bytes]:
            if not wires:
                loop = asyncio.get_running_loop()
                wires.append((await loop.create_connection(Wire, name, int(port)))[1])
            wire = wires[0]
            kind = "content-type: application/json\r\ncontent-length: "
            wire.transport.write(f"{head}{kind}{len(body)}\r\n\r\n".encode() + body)
            await wire.until(b"\r\n\r\n")
            while size := int(await wire.until(b"\r\n"), 16):
                for line in (await wire.take(size + 2)).split(b"\n"):
                    yield line
            await wire.take(2)

        return send
