"""A server's result as content for the model."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

import mcp_types

from deepstrike.execution.mcp.words import plain
from deepstrike.text import well_formed
from deepstrike.tools.failures import failure
from deepstrike.tools.results import Kept
from deepstrike.wire.message import File, Image, Part, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What model services take as images."""

_LONGEST_LABEL: Final = 200


def to_result(answer: mcp_types.CallToolResult, notes: Sequence[str]) -> ToolResult:
    """Text, images and embedded resources in the server's order; what no model can read, or nobody, is named in a text.

    Structured content is added as JSON unless one of the texts says the same. A result that the server marks as an
    error is one (`tool_error`). `notes` follow it.
    """
    kept = Kept()
    for block in answer.content:
        kept.add(_part(block))
    if answer.structured_content is not None and not _said(answer):
        kept.add(Text(well_formed(_compact(answer.structured_content))))
    for note in notes:
        kept.add(Text(note))
    parts = tuple(part for part in kept.parts() if part != Text("")) or (Text(""),)
    if answer.is_error and parts == (Text(""),):
        return failure("tool_error", "the tool reported an error without a word")
    return ToolResult(parts, "tool_error" if answer.is_error else "")


def _part(block: mcp_types.ContentBlock) -> Part:
    match block:
        case mcp_types.TextContent():
            return Text(block.text)
        case mcp_types.ImageContent():
            return _data(block.mime_type, block.data, "image")
        case mcp_types.AudioContent():
            return _data(block.mime_type, block.data, "audio")
        case mcp_types.ResourceLink():
            return Text(plain(f"[resource {block.name}: {block.uri}]", 4 * _LONGEST_LABEL))
        case mcp_types.EmbeddedResource():
            return _resource(block.resource)


def _resource(resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents) -> Part:
    if isinstance(resource, mcp_types.TextResourceContents):
        return Text(resource.text)
    return _data(resource.mime_type or "", resource.blob, str(resource.uri))


def _data(media_type: str, data: str, name: str) -> Part:
    media_type = media_type.partition(";")[0].strip().lower()
    data = "".join(data.split())  # some servers break it into lines
    if (flaw := _flaw(data)) is not None:
        return _unshown(name, media_type, f"cannot be shown: the server sent {flaw}")
    if media_type in IMAGES:
        return Image(media_type, data)
    if media_type == "application/pdf":
        return File(media_type, data, plain(name, _LONGEST_LABEL))
    return _unshown(name, media_type, f"about {len(data) * 3 // 4} bytes, not shown")


def _flaw(data: str) -> str | None:
    """What is wrong with it. A model service refuses the whole request for it, and each one after that."""
    try:
        return None if base64.b64decode(data, validate=True) else "no data"
    except ValueError as error:
        return f"data that is no base64 ({error})"


def _unshown(name: str, media_type: str, why: str) -> Text:
    what = plain(f"{name}: {media_type or 'unknown type'}", 2 * _LONGEST_LABEL)
    return Text(f"[{what}, {why}]")


def _said(answer: mcp_types.CallToolResult) -> bool:
    """Whether a text holds the structured content already, as servers do for older clients."""
    said = {block.text for block in answer.content if isinstance(block, mcp_types.TextContent)}
    told = answer.structured_content
    if isinstance(told, dict) and told.keys() == {"result"}:  # so the official server wraps what is no object
        return any(_means(text, told) or _means(text, told["result"]) for text in said)
    return any(_means(text, told) for text in said)


def _means(text: str, value: object) -> bool:
    try:
        return text == value or bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
