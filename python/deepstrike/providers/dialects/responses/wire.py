"""The parts of Responses events and items that we read. Every field may be absent or null, whatever the documents say.

Items and whole responses stay raw JSON until somebody needs them: an item is replayed as it came.
"""

from __future__ import annotations

from typing import Final

import msgspec

from deepstrike.providers.dialects.mending import mended
from deepstrike.text import well_formed_json
from deepstrike.wire.message import Usage

ABSENT: Final = msgspec.Raw()
READ_TYPES: Final = frozenset({"function_call", "message", "reasoning"})


class Event(msgspec.Struct, gc=False):
    """One event of the stream. `delta` is a text in all events that we read."""

    type: str = ""
    delta: object = None
    output_index: int | None = None
    item_id: str | None = None
    summary_index: int | None = None
    item: msgspec.Raw = ABSENT
    response: msgspec.Raw = ABSENT


class ContentPart(msgspec.Struct, gc=False):
    """A part of a message or of reasoning: text or refusal."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None

    @property
    def said(self) -> str:
        """What this part shows."""
        return self.text or self.refusal or ""


class Item(msgspec.Struct, gc=False):
    """An output item. `arguments` is JSON text, or (some servers) the object itself."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    status: str | None = None
    content: list[ContentPart] | str | None = None
    summary: list[ContentPart] | None = None
    encrypted_content: str | None = None


class Kind(msgspec.Struct, gc=False):
    """The fields that items of every type have."""

    type: str = ""
    id: str | None = None


class IncompleteDetails(msgspec.Struct, gc=False):
    """Why a response is incomplete: `max_output_tokens` or `content_filter`."""

    reason: str | None = None


class Response(msgspec.Struct, gc=False):
    """A whole response: the last event's, or the answer of a server that does not stream."""

    object: str | None = None
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    incomplete_details: IncompleteDetails | None = None
    usage: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


class InputDetails(msgspec.Struct, gc=False):
    """`input_tokens_details`."""

    cached_tokens: float | None = None
    cache_write_tokens: float | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """`output_tokens_details`."""

    reasoning_tokens: float | None = None


class UsageObject(msgspec.Struct, gc=False):
    """`usage`: the input includes the cached part, the output the reasoning."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


decode_event = msgspec.json.Decoder(Event).decode
_decode_item = msgspec.json.Decoder(Item).decode
_decode_kind = msgspec.json.Decoder(Kind).decode
decode_response = msgspec.json.Decoder(Response).decode
# Some services write numbers as text.
_decode_usage = msgspec.json.Decoder(UsageObject, strict=False).decode


def mend(payload: bytes) -> bytes | None:
    """JSON that every reader takes: lone surrogates and what is no UTF-8 become U+FFFD. None if it is no JSON."""
    text = well_formed_json(payload.decode("utf-8", "replace")).encode()
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return mended(payload)  # writes numbers and escapes anew, so it comes last: items go back byte by byte
    return text


def read_item(raw: bytes) -> Item | None:
    """The item; None if it cannot be read. Of a type that we only keep, type and id are enough."""
    try:
        return _decode_item(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        kind = _decode_kind(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if kind.type in READ_TYPES else Item(kind.type, kind.id)


def read_usage(raw: bytes) -> Usage | None:
    """The usage object as `Usage`; None when it counts nothing or cannot be read."""
    try:
        usage = _decode_usage(raw)
    except msgspec.DecodeError:
        return None
    given, output = _count(usage.input_tokens), _count(usage.output_tokens)
    if not given and not output:
        return None
    details = usage.input_tokens_details or InputDetails()
    return Usage(
        input=given,
        output=output,
        cached=min(_count(details.cached_tokens), given),
        cache_write=_count(details.cache_write_tokens),
        reasoning=_count((usage.output_tokens_details or OutputDetails()).reasoning_tokens),
    )


def is_given(raw: msgspec.Raw) -> bool:
    """The field was there and is not null."""
    return bool(raw) and bytes(raw) != b"null"


def _count(tokens: float | None) -> int:
    return max(0, int(tokens)) if tokens else 0
