"""A chat-completions server in a process of its own, cheaper than any of its clients.

`http://127.0.0.1:PORT/<n>/v1/chat/completions` asks for the tool `n` times and then streams the final text. Which turn
it is, the server reads from the raw body (how many tool results it holds), so it parses nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys

from bench.workload import TOOL_NAME, arguments, compact, pieces

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    """One SSE event in one HTTP chunk."""
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


def completion(turn: int, delta: object, finish: str | None = None) -> bytes:
    """A chat.completion.chunk."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": f"chatcmpl-{turn}", "object": "chat.completion.chunk", "created": 1700000000, "model": "bench"}
    return chunk(compact({**head, "choices": [choice]}))


def tail(turn: int) -> bytes:
    """Usage, the end mark, the last HTTP chunk."""
    usage = {"prompt_tokens": 100 + turn, "completion_tokens": 12, "total_tokens": 112 + turn}
    return chunk(compact({"id": f"chatcmpl-{turn}", "choices": [], "usage": usage})) + chunk(b"[DONE]") + b"0\r\n\r\n"


def call_answer(turn: int) -> list[bytes]:
    """A tool call whose arguments come in four pieces."""
    text = arguments(turn)
    size = -(-len(text) // 4)
    function: dict[str, object] = {"name": TOOL_NAME, "arguments": ""}
    opening = {"index": 0, "id": f"call_{turn}", "type": "function", "function": function}
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    return [
        HEAD + completion(turn, {"role": "assistant", "content": None}),
        completion(turn, {"tool_calls": [opening]}),
        *(completion(turn, {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in parts),
        completion(turn, {}, "tool_calls"),
        tail(turn),
    ]


def text_answer(turn: int) -> list[bytes]:
    """The final text."""
    said = [completion(turn, {"content": piece}) for piece in pieces()]
    return [
        HEAD + completion(turn, {"role": "assistant", "content": ""}),
        *said,
        completion(turn, {}, "stop"),
        tail(turn),
    ]


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests are answered in order."""

    answers: dict[tuple[int, bool], list[bytes]] = {}  # noqa: RUF012 (shared by all connections on purpose)

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (size := self.request_size()) is not None:
            if len(self.buffer) < size:
                return
            request = bytes(self.buffer[:size])
            del self.buffer[:size]
            self.answer(request)

    def request_size(self) -> int | None:
        """Bytes of the request at the head of the buffer, None while its head is not whole."""
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = self.buffer[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        return end + 4 + int(length)

    def answer(self, request: bytes) -> None:
        turns = int(request.split(b" ", 2)[1].split(b"/", 2)[1])
        turn = request.count(b'"role":"tool"') if turns else 0
        asks = turn < turns
        key = (turn, asks)
        if key not in self.answers:
            self.answers[key] = call_answer(turn) if asks else text_answer(turn)
        for piece in self.answers[key]:
            self.transport.write(piece)


async def main() -> None:
    """Serve until the parent closes our standard input."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    gone = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1) else gone.set())
    await gone.wait()


if __name__ == "__main__":
    asyncio.run(main())
