"""The parts of a messages stream that we read. Every field may be absent or null, whatever the documents say.

What is kept word for word (blocks that only the service understands) or read only now and then is left as raw JSON.
"""

from __future__ import annotations

from typing import Final

import msgspec

ABSENT: Final = msgspec.Raw()
NULL: Final = b"null"


class Delta(msgspec.Struct, gc=False):
    """What an event adds to its block, or at the end of the message says about it."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_details: msgspec.Raw = ABSENT


class StreamEvent(msgspec.Struct, gc=False):
    """One event of the stream; `type` says which of the fields it has."""

    type: str = ""
    index: int | None = None
    delta: Delta | None = None
    content_block: msgspec.Raw = ABSENT
    message: msgspec.Raw = ABSENT
    usage: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


class Opening(msgspec.Struct, gc=False):
    """A block as it begins, or the whole of it in an answer that is not streamed."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = ABSENT
    citations: msgspec.Raw = ABSENT


class Transformation(msgspec.Struct, gc=False):
    """Something that the service changed in the request before the model read it."""

    type: str = ""
    reason: str | None = None


class Message(msgspec.Struct, gc=False):
    """The message that a stream opens with, or the whole answer."""

    type: str = ""
    content: list[msgspec.Raw] | None = None
    stop_reason: str | None = None
    stop_details: msgspec.Raw = ABSENT
    usage: msgspec.Raw = ABSENT
    input_transformations: list[Transformation] | None = None


class StopDetails(msgspec.Struct, gc=False):
    """Why the model declined."""

    category: str | None = None
    explanation: str | None = None


class OddEvent(msgspec.Struct, gc=False):
    """An event whose delta has fields that we do not know."""

    delta: dict[str, msgspec.Raw]


class OutputDetails(msgspec.Struct, gc=False):
    """`output_tokens_details`."""

    thinking_tokens: float | None = None


class Iteration(msgspec.Struct, gc=False):
    """One of the model calls that the service made for an answer."""

    type: str = ""
    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_creation_input_tokens: float | None = None
    cache_read_input_tokens: float | None = None


class UsageObject(msgspec.Struct, gc=False):
    """`usage`: totals so far, not additions."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_creation_input_tokens: float | None = None
    cache_read_input_tokens: float | None = None
    output_tokens_details: OutputDetails | None = None
    iterations: list[Iteration] | None = None


decode_event = msgspec.json.Decoder(StreamEvent).decode
decode_opening = msgspec.json.Decoder(Opening).decode
decode_message = msgspec.json.Decoder(Message).decode
decode_stop_details = msgspec.json.Decoder(StopDetails).decode
decode_odd = msgspec.json.Decoder(OddEvent).decode
decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# Gateways are known to write numbers as text.
decode_usage = msgspec.json.Decoder(UsageObject, strict=False).decode


def is_given(raw: msgspec.Raw) -> bool:
    """The field was there and is not null."""
    return bool(raw) and bytes(raw) != NULL
