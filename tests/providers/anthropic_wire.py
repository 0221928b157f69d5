"""Bytes of the messages wire, and what a strict service would say to a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from deepstrike.providers.base import Memo, ModelEvent, ModelInfo, ModelRequest, OutputSchema
from deepstrike.providers.dialects.base import Asked
from deepstrike.providers.dialects.messages.decode import MessagesDecoder
from deepstrike.providers.dialects.messages.dialect import MessagesDialect
from deepstrike.providers.dialects.sse import SseReader
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.wire.message import ToolSpec, Turn

SOURCE = "anthropic"
PLAIN = ModelInfo("claude-test", 200_000, 8_000)


def event(kind: str, **fields: object) -> bytes:
    """One server-sent event."""
    payload = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {payload}\n\n".encode()


def begin(**usage: int) -> bytes:
    """The event that opens a message."""
    counts = {"input_tokens": 10, "output_tokens": 1, **usage}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": counts}
    return event("message_start", message=message)


def opened(index: int, **block: object) -> bytes:
    """A block begins."""
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **fields: object) -> bytes:
    """A piece of a block."""
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def closed(index: int) -> bytes:
    """A block ends."""
    return event("content_block_stop", index=index)


def text(index: int, *pieces: str) -> bytes:
    """A whole text block."""
    deltas = b"".join(delta(index, "text_delta", text=piece) for piece in pieces)
    return opened(index, type="text", text="") + deltas + closed(index)


def thinking(index: int, said: str, signature: str) -> bytes:
    """A whole thinking block."""
    return (
        opened(index, type="thinking", thinking="", signature="")
        + delta(index, "thinking_delta", thinking=said)
        + delta(index, "signature_delta", signature=signature)
        + closed(index)
    )


def tool_use(index: int, call_id: str, name: str, *pieces: str) -> bytes:
    """A whole tool call."""
    deltas = b"".join(delta(index, "input_json_delta", partial_json=piece) for piece in pieces)
    return opened(index, type="tool_use", id=call_id, name=name, input={}) + deltas + closed(index)


def stopped(reason: str, usage: Mapping[str, object] | None = None, **more: object) -> bytes:
    """The reason why the message ends, and its end."""
    counts = {"output_tokens": 5, **(usage or {})}
    said = {"stop_reason": reason, "stop_sequence": None, **more}
    return event("message_delta", delta=said, usage=counts) + event("message_stop")


def answer(*blocks: bytes, reason: str = "end_turn") -> bytes:
    """A whole answer of these blocks."""
    return begin() + b"".join(blocks) + stopped(reason)


def new_decoder(*, expose_reasoning: bool = True, names: Mapping[str, str] | None = None) -> MessagesDecoder:
    """A decoder as the provider makes it."""
    return MessagesDecoder(SOURCE, names or {}, Faults(Mask([])), expose_reasoning=expose_reasoning)


def decode_pieces(pieces: Iterable[bytes], decoder: MessagesDecoder | None = None) -> list[ModelEvent]:
    """The events of a body that arrives in these pieces, through reader and decoder."""
    reader, decoder = SseReader(), decoder or new_decoder()
    out: list[ModelEvent] = []
    for piece in pieces:
        out += decoder.feed(reader.push(piece))
    for payload in reader.close():
        out += decoder.feed_last(payload)
    return out + decoder.end()


def decode(body: bytes) -> list[ModelEvent]:
    """The events of `body`, the same at every cut into two, byte by byte, and with other line ends."""
    whole = decode_pieces([body])
    assert decode_pieces(body[i : i + 1] for i in range(len(body))) == whole
    for cut in range(1, len(body)):
        assert decode_pieces([body[:cut], body[cut:]]) == whole, f"cut at {cut}"
    for form in (body.replace(b"\n", b"\r\n"), body.replace(b"\n", b"\r"), body.rstrip(b"\n"), b"\xef\xbb\xbf" + body):
        assert decode_pieces([form]) == whole
    return whole


def ask_for(
    turns: Sequence[Turn],
    *,
    memo: Memo | None = None,
    stable: str = "",
    knowledge: str = "",
    tools: tuple[ToolSpec, ...] = (),
    fields: Mapping[str, object] | None = None,
    extensions: Mapping[str, object] | None = None,
    info: ModelInfo = PLAIN,
    limit: int | None = 1_000,
    output: OutputSchema | None = None,
    reserve: int = 8_000,
) -> Asked:
    """A call as the dialect sees it."""
    request = ModelRequest(
        stable, knowledge, turns, tools, extensions or {}, memo=memo or Memo(), output=output, reserve=reserve
    )
    return Asked(request, info, SOURCE, fields or {}, limit, Faults(Mask([])))


def body_of(asked: Asked, *, cache: bool = False) -> dict[str, object]:
    """The request body as a strict service reads it, which finds no fault with it."""
    body = json.loads(MessagesDialect(cache=cache).encode(asked))
    assert isinstance(body, dict)
    assert judge(body) is None
    return body


def blocks_of(body: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Every content block with the role of its message."""
    messages = body["messages"]
    assert isinstance(messages, list)
    for message in messages:
        for block in message["content"]:
            yield message["role"], block


def judge(body: Mapping[str, object]) -> str | None:
    """Why the service would refuse these messages; None if it would not."""
    messages = body["messages"]
    assert isinstance(messages, list)
    if not messages or messages[0]["role"] != "user":
        return "the first message is not the user's"
    if json.dumps(body).count('"cache_control"') > 4:
        return "more than four breakpoints"
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        fault = _judge_message(message, open_ids)
        if fault is not None:
            return f"messages[{place}]: {fault}"
    return f"calls without a result: {open_ids}" if open_ids else None


def _judge_message(message: Mapping[str, object], open_ids: list[str]) -> str | None:
    content = message["content"]
    assert isinstance(content, list)
    if not content:
        return "empty content"
    if any(block["type"] == "text" and not block["text"].strip() for block in content):
        return "a blank text"
    if message["role"] == "assistant":
        if open_ids:
            return f"calls without a result: {open_ids}"
        if content[-1]["type"] in ("thinking", "redacted_thinking"):
            return "thinking at the end"
        open_ids += [block["id"] for block in content if block["type"] == "tool_use"]
        return None
    answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    first = [block["tool_use_id"] for block in content[: len(answered)] if block["type"] == "tool_result"]
    fault = None if answered == first == open_ids else f"{answered} answers {open_ids}"
    open_ids.clear()
    return fault
