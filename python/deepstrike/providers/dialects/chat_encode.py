"""`ModelRequest` → the bytes of a chat completion request.

What was encoded once is kept in `request.memo` and never looked at again: a request costs what is new in it, and the
messages of one request are a byte-exact beginning of the next one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.json_text import canonical, canonical_text, quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.wire.message import AssistantBlock, CallBlock, File, Image, ResultBlock, Text, UserBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.providers.base import ModelRequest
    from deepstrike.wire.message import Part, ToolSpec, Turn


def encode_request(
    request: ModelRequest, model: str, fields: Mapping[str, object], limit_field: str, limit: int | None
) -> bytes:
    """The request body. `fields` are extra top-level fields in wire form, the same on every call with one memo."""
    memo = request.memo
    if not memo.head:
        memo.head = _head(request, model, fields)
    turns = request.turns
    if memo.turns < len(turns):
        _append(memo.body, turns[memo.turns :] if memo.turns else turns)
        memo.turns = len(turns)
    tail = b"]}" if limit is None else b"],%b:%d}" % (quote(limit_field), limit)
    return b"".join((memo.head, memo.body, tail))


def _head(request: ModelRequest, model: str, fields: Mapping[str, object]) -> bytes:
    """Everything up to the first turn: fields, tools, system messages."""
    plain: dict[str, object] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    start = canonical({**plain, **fields})[:-1]
    tools = b',"tools":[%b]' % b",".join(map(_tool, request.tools)) if request.tools else b""
    systems = [text for text in (request.system_stable, request.system_knowledge) if text]
    messages = b",".join(b'{"role":"system","content":%b}' % quote(text) for text in systems)
    return b'%b%b,"messages":[%b' % (start, tools, messages + b"," if messages and request.turns else messages)


def _tool(tool: ToolSpec) -> bytes:
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        quote(wire_name(tool.name)),
        quote(tool.description),
        canonical_text(tool.parameters),
    )


def _append(body: bytearray, turns: Sequence[Turn]) -> None:
    """Add the messages of `turns`. Results of one reply always come together, so a group never spans two requests."""
    messages: list[bytes] = []
    pictures: list[Part] = []
    for turn in turns:
        if isinstance(turn, ResultBlock):
            messages.append(_result(turn))
            pictures.extend(part for part in turn.parts if not isinstance(part, Text))
            continue
        if pictures:
            messages.append(_user(pictures))
            pictures = []
        if isinstance(turn, UserBlock):
            messages.append(_user(turn.parts))
        elif (message := _assistant(turn)) is not None:
            messages.append(message)
    if pictures:
        messages.append(_user(pictures))
    if messages:
        if body:
            body += b","
        body += b",".join(messages)


def _result(block: ResultBlock) -> bytes:
    """One tool message. The role takes text only: images and files follow in a user message behind the group."""
    texts = [part.text for part in block.parts if isinstance(part, Text)]
    if len(texts) < len(block.parts):
        texts.append(f"[the attachments of {block.name} follow]")
    return b'{"role":"tool","tool_call_id":%b,"content":%b}' % (quote(block.call_id), quote("\n".join(texts)))


def _user(parts: Sequence[Part]) -> bytes:
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) == len(parts):
        return b'{"role":"user","content":%b}' % quote("\n".join(texts))
    return b'{"role":"user","content":[%b]}' % b",".join(map(_part, parts))


def _part(part: Part) -> bytes:
    if isinstance(part, Text):
        return b'{"type":"text","text":%b}' % quote(part.text)
    if isinstance(part, Image):
        return b'{"type":"image_url","image_url":{"url":%b}}' % quote(part.url or _data_url(part))
    name = quote(part.name or "file")
    return b'{"type":"file","file":{"filename":%b,"file_data":%b}}' % (name, quote(_data_url(part)))


def _data_url(part: Image | File) -> str:
    return f"data:{part.media_type};base64,{part.data}"


def _assistant(block: AssistantBlock) -> bytes | None:
    """Text and calls; thinking is not sent back. None for a block with neither, which services refuse."""
    text, calls = "", []
    for part in block.parts:
        if isinstance(part, CallBlock):
            calls.append(_call(part))
        elif isinstance(part, Text):
            text += part.text
    if not calls:
        return b'{"role":"assistant","content":%b}' % quote(text) if text else None
    content = quote(text) if text else b"null"
    return b'{"role":"assistant","content":%b,"tool_calls":[%b]}' % (content, b",".join(calls))


def _call(call: CallBlock) -> bytes:
    return b'{"id":%b,"type":"function","function":{"name":%b,"arguments":%b}}' % (
        quote(call.id),
        quote(wire_name(call.name)),
        quote(call.args_text),
    )
