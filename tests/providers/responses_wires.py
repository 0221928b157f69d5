"""Bytes and servers that the tests of the Responses dialect are made of."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING

from wires import Said, put_together

from deepstrike.providers.dialects.responses.decode import ResponsesDecoder
from deepstrike.providers.dialects.sse import SseReader
from deepstrike.providers.faults import Faults
from deepstrike.providers.openai import OPENAI_RESPONSES
from deepstrike.providers.redact import Mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from deepstrike.providers.base import ModelEvent

SOURCE = "openai-responses"
Item = dict[str, object]


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def event(kind: str, **fields: object) -> bytes:
    """One event, its kind in both places."""
    body = compact({"type": kind, "sequence_number": 1, **fields})
    return f"event: {kind}\ndata: {body}\n\n".encode()


def reasoning(item_id: str = "rs_1", secret: str = "gAAA", *summary: str) -> Item:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": item_id, "type": "reasoning", "content": [], "encrypted_content": secret, "summary": texts}


def message(text: str, item_id: str = "msg_1", **more: object) -> Item:
    parts = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
    return {
        "id": item_id,
        "type": "message",
        "status": "completed",
        "content": parts,
        "role": "assistant",
        **more,
    }


def function_call(name: str, arguments: object, call_id: str = "call_1", item_id: str = "fc_1", **more: object) -> Item:
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": call_id,
        "name": name,
        **more,
    }


def added(index: int, item: Mapping[str, object]) -> bytes:
    return event("response.output_item.added", output_index=index, item=item)


def done(index: int, item: Mapping[str, object]) -> bytes:
    return event("response.output_item.done", output_index=index, item=item)


def delta(index: int, text: str, kind: str = "output_text", **more: object) -> bytes:
    return event(f"response.{kind}.delta", output_index=index, delta=text, obfuscation="xyz", **more)


def usage(given: int = 9, output: int = 4, cached: int = 0, reasoned: int = 0) -> Item:
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoned},
        "total_tokens": given + output,
    }


def whole(*items: Item, **more: object) -> Item:
    """A response object."""
    return {"id": "resp_1", "object": "response", "status": "completed", "error": None, "output": list(items), **more}


def completed(*items: Item, **more: object) -> bytes:
    return event("response.completed", response=whole(*items, **more))


def incomplete(reason: str, *items: Item) -> bytes:
    details = {"reason": reason}
    return event("response.incomplete", response=whole(*items, status="incomplete", incomplete_details=details))


def said_in_pieces(index: int, text: str, **more: object) -> bytes:
    """A message as it streams: opened, in deltas of three characters, whole."""
    item = message(text, f"msg_{index}", **more)
    opened = added(index, {**item, "content": [], "status": "in_progress"})
    pieces = [delta(index, text[at : at + 3], item_id=item["id"]) for at in range(0, len(text), 3)]
    return b"".join([opened, *pieces, done(index, item)])


def called_in_pieces(index: int, name: str, arguments: str, call_id: str = "call_1") -> bytes:
    """A call as it streams."""
    item = function_call(name, arguments, call_id, f"fc_{index}")
    opened = added(index, {**item, "arguments": "", "status": "in_progress"})
    kind = "function_call_arguments"
    pieces = [delta(index, arguments[at : at + 4], kind) for at in range(0, len(arguments), 4)]
    end = event("response.function_call_arguments.done", output_index=index, arguments=arguments)
    return b"".join([opened, *pieces, end, done(index, item)])


def new_decoder(names: Mapping[str, str] | None = None, *, expose: bool = True) -> ResponsesDecoder:
    faults = Faults(Mask([]), OPENAI_RESPONSES.words)
    return ResponsesDecoder(names or {}, faults, SOURCE, expose_reasoning=expose)


def decode_pieces(pieces: Iterable[bytes], decoder: ResponsesDecoder | None = None) -> list[ModelEvent]:
    """The events of a body that arrives in these pieces, through reader and decoder."""
    reader = SseReader()
    decoder = decoder or new_decoder()
    out: list[ModelEvent] = []
    for piece in pieces:
        out += decoder.feed(reader.push(piece))
        if decoder.done:
            break
    for payload in reader.close():
        out += decoder.feed_last(payload)
    return out + decoder.end()


def decode(body: bytes) -> list[ModelEvent]:
    """The events that `body` holds, the same byte by byte and with any line end."""
    found = decode_pieces([body])
    for form in (body, body.replace(b"\n", b"\r\n"), body.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + body):
        assert decode_pieces(form[i : i + 1] for i in range(len(form))) == found
    return found


def told(body: bytes) -> Said:
    return put_together(decode(body))


class ResponsesServer:
    """Answers the n-th request with the n-th of `answers`: a body of events, or a status with an error object."""

    def __init__(self, *answers: bytes | tuple[int, Mapping[str, object]]) -> None:
        self._answers = deque(answers)
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[str] = []
        self.base_url = ""

    @property
    def requests(self) -> Sequence[dict[str, object]]:
        """The bodies as objects."""
        return [json.loads(body) for body in self.bodies]

    async def __aenter__(self) -> ResponsesServer:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        self.paths.append(head.split(" ")[1])
        self.headers.append(head)
        self.bodies.append(await reader.readexactly(int(fields["content-length"])))
        writer.write(_http(self._answers.popleft()))
        await writer.drain()
        writer.close()


def _http(answer: bytes | tuple[int, Mapping[str, object]]) -> bytes:
    if isinstance(answer, bytes):
        status, kind, body = 200, "text/event-stream", answer
    else:
        status, kind, body = answer[0], "application/json", compact({"error": answer[1]}).encode()
    head = f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
