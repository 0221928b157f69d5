"""A second, slower reading of chat chunks that the quick one refuses.

Services send lone surrogates, bytes that are no UTF-8, NaN, and numbers as text. None of that is worth the text, the
call or the finish in the same chunk: what can be read is read, a field of a wrong form counts as absent.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.chat.wire import (
    ABSENT,
    Aside,
    CallDelta,
    Choice,
    Chunk,
    ContentPart,
    Delta,
    Function,
    Outcome,
)
from deepstrike.text import well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping


class Mended(msgspec.Struct, frozen=True, gc=False):
    """A chunk, and the payload as JSON that every reader takes."""

    chunk: Chunk
    payload: bytes


def mend(payload: bytes) -> Mended | None:
    """The chunk in `payload`; None if it is no JSON at all. JSON that is no object gives a chunk with nothing in it.

    Bytes that are no UTF-8 and lone surrogates become U+FFFD, NaN and the infinities null.
    """
    try:
        value = _clean(json.loads(payload.decode("utf-8", "replace")))
        return Mended(_chunk(_object(value)), _encode(value))
    except (ValueError, RecursionError):
        return None


def mend_text(raw: bytes) -> str:
    """A JSON string that the quick reading refuses. What is no string at all gives an empty text."""
    try:
        return _text(_clean(json.loads(raw.decode("utf-8", "replace")))) or ""
    except ValueError:
        return ""


def _clean(value: object) -> object:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {well_formed(key): _clean(item) for key, item in value.items()}
    return value


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _chunk(fields: Mapping[str, object]) -> Chunk:
    choices = [_choice(_object(item)) for item in _list(fields.get("choices"))]
    return Chunk(
        choices,
        _raw(fields, "usage"),
        _raw(fields, "error"),
        _outcome(_object(fields.get("base_resp"))),
        _aside(_object(fields.get("x_groq"))),
    )


def _outcome(fields: Mapping[str, object]) -> Outcome:
    return Outcome(_whole(fields.get("status_code")), _text(fields.get("status_msg")))


def _aside(fields: Mapping[str, object]) -> Aside:
    return Aside(_raw(fields, "usage"), _raw(fields, "error"))


def _choice(fields: Mapping[str, object]) -> Choice:
    return Choice(
        index=_whole(fields.get("index")),
        delta=_delta(fields.get("delta")),
        message=_delta(fields.get("message")),
        finish_reason=_text(fields.get("finish_reason")),
        usage=_raw(fields, "usage"),
    )


def _delta(value: object) -> Delta | None:
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    return Delta(
        content=[_part(item) for item in content] if isinstance(content, list) else _text(content),
        reasoning_content=_text(value.get("reasoning_content")),
        reasoning=_text(value.get("reasoning")),
        reasoning_details=_raw(value, "reasoning_details"),
        refusal=_text(value.get("refusal")),
        tool_calls=[_call(item) for item in _list(value.get("tool_calls")) if isinstance(item, dict)],
        function_call=_function(value.get("function_call")),
    )


def _part(value: object) -> ContentPart:
    if not isinstance(value, dict):
        return ContentPart(text=_text(value))
    thinking = value.get("thinking")
    return ContentPart(
        type=_text(value.get("type")) or "",
        text=_text(value.get("text")),
        thinking=[_part(item) for item in thinking] if isinstance(thinking, list) else _text(thinking),
    )


def _call(fields: Mapping[str, object]) -> CallDelta:
    return CallDelta(_whole(fields.get("index")), _text(fields.get("id")), _function(fields.get("function")))


def _function(value: object) -> Function | None:
    if not isinstance(value, dict):
        return None
    return Function(_text(value.get("name")), _raw(value, "arguments"))


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _raw(fields: Mapping[str, object], name: str) -> msgspec.Raw:
    return msgspec.Raw(_encode(fields[name])) if name in fields else ABSENT


def _text(value: object) -> str | None:
    """A text, or a number as one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int | float) else None


def _whole(value: object) -> int | None:
    """A whole number, also one written with a point or as text."""
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() and value.isascii() and len(value) < 10 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
