"""The parts of a chat completion chunk that we read. Every field may be absent or null, whatever the documents say.

What services disagree about is left as raw JSON (`error`, `usage`, `arguments`), for the code that needs it.
"""

from __future__ import annotations

from typing import Final

import msgspec

ABSENT: Final = msgspec.Raw()
NULL: Final = b"null"


class Function(msgspec.Struct, gc=False):
    """`arguments` is a piece of JSON text, or (some servers) the object itself."""

    name: str | None = None
    arguments: msgspec.Raw = ABSENT


class CallDelta(msgspec.Struct, gc=False):
    """A piece of a tool call. Ids are numbers on some gateways."""

    index: int | None = None
    id: str | int | None = None
    function: Function | None = None


class ContentPart(msgspec.Struct, gc=False):
    """Content as a list of parts: text, or thinking that is itself a list of parts (Mistral)."""

    type: str = ""
    text: str | None = None
    thinking: list[ContentPart] | str | None = None


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds. `reasoning_content` and `reasoning` are two names of one thing, which `reasoning_details`
    repeat in a form that can go back."""

    content: str | list[ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: msgspec.Raw = ABSENT
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: Function | None = None


class Choice(msgspec.Struct, gc=False):
    """One of `n` answers. `message` stands there instead of `delta` in answers that are not streamed."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    usage: msgspec.Raw = ABSENT


class Outcome(msgspec.Struct, gc=False):
    """`base_resp`: how MiniMax says that it failed, zero for well."""

    status_code: int | None = None
    status_msg: str | None = None


class Aside(msgspec.Struct, gc=False):
    """`x_groq`: what Groq tells beside the answer."""

    usage: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


class Chunk(msgspec.Struct, gc=False):
    """One event of the stream, or the whole answer."""

    choices: list[Choice] | None = None
    usage: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT
    base_resp: Outcome | None = None
    x_groq: Aside | None = None


class InputDetails(msgspec.Struct, gc=False):
    """`prompt_tokens_details`."""

    cached_tokens: float | None = None
    cache_write_tokens: float | None = None
    cache_creation_input_tokens: float | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """`completion_tokens_details`."""

    reasoning_tokens: float | None = None


class UsageObject(msgspec.Struct, gc=False):
    """`usage`; the cached part stands in one of three places."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_cache_hit_tokens: float | None = None
    cached_tokens: float | None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode
# Some services write numbers as text.
decode_usage = msgspec.json.Decoder(UsageObject, strict=False).decode
decode_text = msgspec.json.Decoder(str).decode


def is_given(raw: msgspec.Raw) -> bool:
    """The field was there and is not null."""
    return bool(raw) and bytes(raw) != NULL
