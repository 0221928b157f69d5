"""Blocks of our prompt → content blocks of the messages wire, as bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import TYPE_CHECKING

from deepstrike.providers.dialects.json_text import quote
from deepstrike.providers.dialects.messages.blocks import BOUNDARY
from deepstrike.providers.dialects.names import wire_name
from deepstrike.wire.message import AssistantBlock, CallBlock, File, Image, Opaque, ResultBlock, Text, Thinking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.message import Part

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_THINKING = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')
_CITED_TEXT = '{"type":"text"'
_SILENT = b'{"type":"text","text":"(no text)"}'
_LONGEST_ID = 64
_id_fits = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
_odd_in_id = re.compile(r"[^a-zA-Z0-9_-]")


def wire_id(call_id: str) -> str:
    """A call's id as the service takes it: itself where it fits, else a legible form with a hash of the whole."""
    if _id_fits(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_odd_in_id.sub('_', call_id)[: _LONGEST_ID - len(digest) - 1]}_{digest}"


def user_content(parts: Sequence[Part]) -> list[bytes]:
    """What a user says. Blank texts are left out, since the service refuses them; a message of nothing else says so."""
    return _parts(parts) or [_SILENT]


def result_content(block: ResultBlock) -> bytes:
    """One tool result; without content where there is none."""
    content = b",".join(_parts(block.parts))
    return b'{"type":"tool_result","tool_use_id":%b%b%b}' % (
        quote(wire_id(block.call_id)),
        b',"content":[%b]' % content if content else b"",
        b',"is_error":true' if block.is_error else b"",
    )


def assistant_content(block: AssistantBlock, source: str, *, prefix_bound: bool = False) -> list[bytes]:
    """What the model said, in its order; empty if nothing of it can be sent.

    Our own artefacts stand as they came. Those of other services, and thinking that is shown only, are left out, and so
    is thinking behind which nothing follows, which the service refuses. `prefix_bound`: the model takes thinking only
    behind the very prefix that it was given to, so behind a rewrite it is left out.
    """
    own, moved = block.dialect == source, prefix_bound and block.rebased
    out: list[bytes] = []
    for part in block.parts:
        if isinstance(part, Text):
            if part.text.strip():
                out.append(_text(part.text))
        elif isinstance(part, CallBlock):
            out.append(_call(part))
        elif isinstance(part, Opaque) and own and part.dialect == source and part.text != BOUNDARY:
            if moved and part.text.encode().startswith(_THINKING):
                continue
            if part.text.startswith(_CITED_TEXT) and out and out[-1].startswith(_CITED_TEXT.encode()):
                out.pop()  # the same text, now with its citations
            out.append(part.text.encode())
    while out and out[-1].startswith(_THINKING):
        out.pop()
    return out


def holds_foreign_thinking(block: AssistantBlock, source: str) -> bool:
    """Whether another service's thinking or artefacts are left out of it."""
    return block.dialect != source and any(isinstance(part, Thinking | Opaque) for part in block.parts)


def _parts(parts: Sequence[Part]) -> list[bytes]:
    blocks: list[bytes] = []
    for part in parts:
        if isinstance(part, Text):
            if part.text.strip():
                blocks.append(_text(part.text))
        else:
            blocks.append(_image(part) if isinstance(part, Image) else _file(part))
    return blocks


def _text(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % quote(text)


def _image(image: Image) -> bytes:
    if image.url:
        return b'{"type":"image","source":{"type":"url","url":%b}}' % quote(image.url)
    if image.media_type not in IMAGES:
        return _text(f"[an image of type {image.media_type or 'unknown'}, which this service cannot read]")
    return b'{"type":"image","source":{"type":"base64","media_type":%b,"data":%b}}' % (
        quote(image.media_type),
        quote(image.data),
    )


def _file(file: File) -> bytes:
    name = file.name or "file"
    if file.media_type == "application/pdf":
        source = b'{"type":"base64","media_type":"application/pdf","data":%b}' % quote(file.data)
    elif (text := _decoded(file)) is not None:
        source = b'{"type":"text","media_type":"text/plain","data":%b}' % quote(text)
    else:
        return _text(f"[the file {name} of type {file.media_type}, which this service cannot read]")
    return b'{"type":"document","source":%b,"title":%b}' % (source, quote(name))


def _decoded(file: File) -> str | None:
    """The text of a text file, None for what is none or is blank."""
    if not file.media_type.startswith("text/") and file.media_type != "application/json":
        return None
    try:
        text = base64.b64decode(file.data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.strip() else None


def _call(call: CallBlock) -> bytes:
    return b'{"type":"tool_use","id":%b,"name":%b,"input":%b}' % (
        quote(wire_id(call.id)),
        quote(wire_name(call.name)),
        call.args_text.encode("utf-8", "replace"),
    )
