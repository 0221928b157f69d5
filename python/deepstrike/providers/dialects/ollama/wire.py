"""The parts of Ollama's answers that we read. Every field may be absent or null."""

from __future__ import annotations

from typing import Final

import msgspec

ABSENT: Final = msgspec.Raw()
NULL: Final = b"null"


class Function(msgspec.Struct, gc=False):
    """`arguments` is an object; some servers send it as JSON text. Servers from 2025 on number their calls."""

    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    index: int | None = None


class Call(msgspec.Struct, gc=False):
    """A tool call, always whole. Only newer servers give ids."""

    id: str | None = None
    function: Function | None = None


class Message(msgspec.Struct, gc=False):
    """What a line adds."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None


class Line(msgspec.Struct, gc=False):
    """One line of the stream, or the whole answer. The last one has `done` and the counts."""

    message: Message | None = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: msgspec.Raw = ABSENT


decode_line = msgspec.json.Decoder(Line).decode
decode_text = msgspec.json.Decoder(str).decode


def is_given(raw: msgspec.Raw) -> bool:
    """The field was there and is not null."""
    return bool(raw) and bytes(raw) != NULL
