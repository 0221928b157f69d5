"""Turns → Gemini's contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from deepstrike.providers.dialects.gemini.replay import foreign_parts, model_parts
from deepstrike.providers.dialects.json_text import quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.tables.gemini import family
from deepstrike.wire.message import AssistantBlock, Image, Notice, ResultBlock, Text, UserBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.base import Memo
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import File, Part, Turn

_INSIDE = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_FOREIGN = Notice(
    "artefact_dropped",
    "thinking and signatures of replies by another model were left out of the prompt: Gemini takes back only what the "
    "same model wrote",
)


def append_turns(memo: Memo, turns: Sequence[Turn], asked: Asked) -> None:
    """Add the contents of `turns`. Results of one reply always come together, so a group never spans two requests."""
    contents: list[bytes] = []
    results: list[ResultBlock] = []
    nested = family(asked.info.id).signed
    foreign = False
    for turn in turns:
        if isinstance(turn, ResultBlock):
            results.append(turn)
            continue
        contents += _results(results, nested)
        results = []
        if isinstance(turn, UserBlock):
            contents.append(_content(b"user", map(_part, turn.parts) if turn.parts else [b'{"text":""}']))
        else:
            foreign = foreign or foreign_parts(turn, asked)
            parts = model_parts(turn, asked)
            contents += [_content(b"model", parts)] if parts else []
    contents += _results(results, nested)
    if foreign:
        memo.notices.append(_FOREIGN)
    if contents:
        memo.body += (b"," if memo.body else b"") + b",".join(contents)


def unsign(asked: Asked) -> None:
    """Write the turns so far anew, as if another model had written the replies: without a signature of theirs.

    For a service that refuses them, which it does behind a change of key or route in mid-session.
    """
    memo = asked.request.memo
    turns = [replace(turn, model="") if isinstance(turn, AssistantBlock) else turn for turn in asked.request.turns]
    memo.body.clear()
    append_turns(memo, turns, asked)
    memo.turns = len(turns)


def _content(role: bytes, parts: Sequence[bytes] | map[bytes]) -> bytes:
    return b'{"role":"%b","parts":[%b]}' % (role, b",".join(parts))


def _results(group: Sequence[ResultBlock], nested: bool) -> list[bytes]:
    """The results of one reply in one content; attachments that cannot stand in their result follow in one behind it.

    `nested`: models from Gemini 3 on take images, PDF and plain text inside a result.
    """
    if not group:
        return []
    inside = [[part for part in block.parts if nested and _fits_inside(part)] for block in group]
    loose = [
        _part(part)
        for block, kept in zip(group, inside, strict=True)
        for part in block.parts
        if not isinstance(part, Text) and part not in kept
    ]
    answers = [_content(b"user", [_result(block, kept) for block, kept in zip(group, inside, strict=True)])]
    return [*answers, _content(b"user", loose)] if loose else answers


def _fits_inside(part: Part) -> bool:
    return not isinstance(part, Text) and bool(part.data) and part.media_type in _INSIDE


def _result(block: ResultBlock, inside: Sequence[Part]) -> bytes:
    """The response must be an object; the vendor names the members `output` and `error`."""
    texts = [part.text for part in block.parts if isinstance(part, Text)]
    if len(texts) + len(inside) < len(block.parts):
        texts.append(f"[the attachments of {block.name} follow]")
    media = b',"parts":[%b]' % b",".join(map(_part, inside)) if inside else b""
    return b'{"functionResponse":{"id":%b,"name":%b,"response":{"%b":%b}%b}}' % (
        quote(block.call_id),
        quote(wire_name(block.name)),
        b"error" if block.is_error else b"output",
        quote("\n".join(texts)),
        media,
    )


def _part(part: Part) -> bytes:
    if isinstance(part, Text):
        return b'{"text":%b}' % quote(part.text)
    if isinstance(part, Image) and not part.data:
        kind = b'"mimeType":%b,' % quote(part.media_type) if part.media_type else b""
        return b'{"fileData":{%b"fileUri":%b}}' % (kind, quote(part.url))
    return _inline(part)


def _inline(part: Image | File) -> bytes:
    return b'{"inlineData":{"mimeType":%b,"data":%b}}' % (quote(part.media_type), quote(part.data))
