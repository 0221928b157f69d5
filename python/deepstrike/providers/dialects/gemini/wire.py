"""The parts of Gemini's answers that we read. Every field may be absent or null."""

from __future__ import annotations

from typing import Final

import msgspec

ABSENT: Final = msgspec.Raw()
NULL: Final = b"null"


class FunctionCall(msgspec.Struct, gc=False):
    """A whole call. `args` is an object, null or absent; only models from Gemini 3 on give ids."""

    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = ABSENT


class Part(msgspec.Struct, gc=False, rename="camel"):
    """Text, a thought, or a call; a signature may stand on any of them, also on an empty text."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: msgspec.Raw = ABSENT
    function_call: FunctionCall | None = None


class Content(msgspec.Struct, gc=False):
    """What an event adds."""

    parts: list[Part] | None = None


class Candidate(msgspec.Struct, gc=False, rename="camel"):
    """One of the answers."""

    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Feedback(msgspec.Struct, gc=False, rename="camel"):
    """Why there is no answer at all."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class Counts(msgspec.Struct, gc=False, rename="camel"):
    """Tokens so far, in every event. The prompt includes what was cached, the candidates leave the thoughts out."""

    prompt_token_count: float | None = None
    cached_content_token_count: float | None = None
    candidates_token_count: float | None = None
    thoughts_token_count: float | None = None
    tool_use_prompt_token_count: float | None = None
    total_token_count: float | None = None


class Chunk(msgspec.Struct, gc=False, rename="camel"):
    """One event of the stream, or the whole answer. The counts are read once, at the end."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


class Mark(msgspec.Struct, gc=False):
    """What our artefact says: which part the signature stood on, and of how many characters that part was.

    `signature` is the JSON string as it came. On a call it stands in front of the call, on a text or a thought behind
    it: the part is the last `chars` characters of what came before.
    """

    on: str
    signature: msgspec.Raw
    chars: int = 0


decode_chunk = msgspec.json.Decoder(Chunk).decode
decode_chunks = msgspec.json.Decoder(list[Chunk]).decode
decode_counts = msgspec.json.Decoder(Counts, strict=False).decode
decode_mark = msgspec.json.Decoder(Mark).decode


def is_given(raw: msgspec.Raw) -> bool:
    """The field was there and is not null."""
    return bool(raw) and bytes(raw) != NULL
