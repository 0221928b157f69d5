"""Bytes and answers that the provider tests are made of."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepstrike.errors import Truncated, Unreachable
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.dialects.sse import SseReader
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Text, Usage, UserBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from deepstrike.providers.dialects.base import Decoder

DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def event(delta: Mapping[str, object], finish: str | None = None, **more: object) -> bytes:
    """One chat chunk as a server-sent event."""
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def call_event(*deltas: Mapping[str, object], finish: str | None = None) -> bytes:
    """A chunk with pieces of tool calls."""
    return event({"tool_calls": list(deltas)}, finish)


def stream(*events: bytes, finish: str = "stop") -> bytes:
    """A whole body: these events, a finish, the end marker."""
    return b"".join(events) + event({}, finish) + DONE


@dataclass(frozen=True)
class Said:
    """An answer put together."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish: str | None = None


def put_together(events: Iterable[ModelEvent]) -> Said:
    """What these events say in all."""
    found = list(events)
    finishes = [one.reason for one in found if isinstance(one, Finish)]
    assert len(finishes) <= 1, "more than one Finish"
    return Said(
        "".join(one.delta for one in found if isinstance(one, TextDelta)),
        "".join(one.delta for one in found if isinstance(one, ThinkingDelta)),
        tuple(one for one in found if isinstance(one, ToolCall)),
        next((one for one in found if isinstance(one, Usage)), None),
        finishes[0] if finishes else None,
    )


def decode_pieces(pieces: Iterable[bytes], decoder: Decoder | None = None) -> list[ModelEvent]:
    """The events of a body that arrives in these pieces, through reader and decoder."""
    reader = SseReader()
    decoder = decoder or ChatDecoder({}, Faults(Mask([])))
    out: list[ModelEvent] = []
    for piece in pieces:
        out += decoder.feed(reader.push(piece))
    for payload in reader.close():
        out += decoder.feed_last(payload)
    return out + decoder.end()


def decode(body: bytes) -> Said:
    """The answer that `body` holds, the same at every cut into two and byte by byte."""
    whole = put_together(decode_pieces([body]))
    assert put_together(decode_pieces(body[i : i + 1] for i in range(len(body)))) == whole
    for cut in range(1, len(body)):
        assert put_together(decode_pieces([body[:cut], body[cut:]])) == whole, f"cut at {cut}"
    return whole


def ask(text: str = "hi", **extensions: object) -> ModelRequest:
    """A request of one user turn."""
    return ModelRequest("Be brief.", "", (UserBlock((Text(text),)),), (), extensions)


async def collect(events: AsyncIterator[ModelEvent]) -> list[ModelEvent]:
    """All events of a call."""
    return [one async for one in events]


async def listen(events: AsyncIterator[ModelEvent], seen: list[ModelEvent]) -> None:
    """Put the events into `seen` as they come, so that those before a failure are kept."""
    async for one in events:
        seen.append(one)  # noqa: PERF401 (a list made at once would lose them)


RESET = Truncated("the connection broke in mid-answer: reset")


@dataclass
class FakeAnswer:
    """An HTTP answer: `pieces` are bytes to give out, an exception to raise, or None to wait until it is closed."""

    pieces: Sequence[bytes | Exception | None]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    closed: bool = False

    def __post_init__(self) -> None:
        self._left = deque(self.pieces)
        self._closing = asyncio.Event()

    async def read(self) -> bytes:
        if not self._left:
            return b""
        piece = self._left.popleft()
        if piece is None:
            await self._closing.wait()
            raise Truncated("closed")
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def settle(self, limit: float) -> None:
        return

    def close(self) -> None:
        self.closed = True
        self._closing.set()


class FakeTransport:
    """Gives the n-th request the n-th answer; an exception is raised, None waits for ever."""

    def __init__(self, answers: Sequence[FakeAnswer | Exception | None]) -> None:
        self._answers = deque(answers)
        self.bodies: list[bytes] = []

    async def post(self, body: bytes) -> FakeAnswer:
        self.bodies.append(body)
        answer = self._answers.popleft()
        if answer is None:
            await asyncio.Event().wait()
            raise Unreachable("never")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self) -> None:
        return


def good(text: str = "fine") -> FakeAnswer:
    """A good answer."""
    return FakeAnswer([stream(event({"content": text}))])


def error(status: int, headers: Mapping[str, str] | None = None, code: str | None = None) -> FakeAnswer:
    """An error answer in the usual form."""
    body = json.dumps({"error": {"message": f"refused with {status}", "code": code}}).encode()
    return FakeAnswer([body], status, {"content-type": "application/json", **(headers or {})})
