"""Turns → Ollama's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.json_text import quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    Image,
    Notice,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    UserBlock,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.base import Memo
    from deepstrike.wire.message import Part, Turn

_FOREIGN = Notice(
    "artefact_dropped",
    "the thinking of replies from another service was left out of the prompt: Ollama gets back only its own",
)


def append_turns(memo: Memo, turns: Sequence[Turn], source: str) -> None:
    """Add the messages of `turns`. Results of one reply always come together, so a group never spans two requests."""
    messages: list[bytes] = []
    pictures: list[Part] = []
    foreign = False
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
        else:
            foreign = foreign or _has_foreign(turn, source)
            messages.extend(_assistant(turn, source))
    if pictures:
        messages.append(_user(pictures))
    if foreign:
        memo.notices.append(_FOREIGN)
    if messages:
        memo.body += (b"," if memo.body else b"") + b",".join(messages)


def _has_foreign(block: AssistantBlock, source: str) -> bool:
    return block.dialect != source and any(isinstance(part, Thinking | Opaque) for part in block.parts)


def _user(parts: Sequence[Part]) -> bytes:
    """Text and images; the wire takes images as bare base64, and nothing else."""
    images = [quote(part.data) for part in parts if isinstance(part, Image) and part.data]
    text = quote("\n".join(text for part in parts if (text := _words(part)) is not None))
    more = b',"images":[%b]' % b",".join(images) if images else b""
    return b'{"role":"user","content":%b%b}' % (text, more)


def _words(part: Part) -> str | None:
    """The text of a part, or what is said in the place of one that the wire cannot carry."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image):
        return None if part.data else f"[an image at {part.url}, which this model service cannot fetch]"
    return f"[the file {part.name or 'without a name'} ({part.media_type}), which this model service cannot read]"


def _result(block: ResultBlock) -> bytes:
    """One tool message. Templates show the text of this role only: attachments follow in a user message."""
    texts = [part.text for part in block.parts if isinstance(part, Text)]
    if len(texts) < len(block.parts):
        texts.append(f"[the attachments of {block.name} follow]")
    return b'{"role":"tool","tool_name":%b,"tool_call_id":%b,"content":%b}' % (
        quote(wire_name(block.name)),
        quote(block.call_id),
        quote("\n".join(texts)),
    )


def _assistant(block: AssistantBlock, source: str) -> list[bytes]:
    """Text, thinking of our own, and calls; nothing for a reply without text and calls."""
    text, thinking, hidden, calls = "", "", b"", []
    for part in block.parts:
        if isinstance(part, Text):
            text += part.text
        elif isinstance(part, CallBlock):
            calls.append(_call(part))
        elif block.dialect == source and isinstance(part, Thinking):
            thinking += part.text
        elif isinstance(part, Opaque) and part.dialect == source == block.dialect:
            hidden = part.text.encode()
    if not text and not calls:
        return []
    thought = quote(thinking) if thinking else hidden
    more = b',"thinking":%b' % thought if thought else b""
    if calls:
        more += b',"tool_calls":[%b]' % b",".join(calls)
    return [b'{"role":"assistant","content":%b%b}' % (quote(text), more)]


def _call(call: CallBlock) -> bytes:
    """Arguments are an object here: as text the server refuses them."""
    return b'{"id":%b,"function":{"name":%b,"arguments":%b}}' % (
        quote(call.id),
        quote(wire_name(call.name)),
        call.args_text.encode(),
    )
