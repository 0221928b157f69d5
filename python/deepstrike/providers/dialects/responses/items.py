"""Output items as artefacts, and back.

Reasoning and everything else that has no part of its own in a reply is kept as it came. Of a message or a function
call, text, name, arguments and call id stand in the reply already: its artefact, the *frame*, is what else the item
says (id, status, phase, annotations). The frame stands behind the part that fills it. In a message's frame the number
of characters stands in the place of each text, so that a text that was shortened since is seen and sent without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.json_text import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILLED = frozenset({"arguments", "call_id", "name"})
_TEXTS = ("text", "refusal")
# Log probabilities are no part of an item that is sent back, and large.
_LEFT_OUT = frozenset({"logprobs"})
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_parts = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode

Fields = dict[str, msgspec.Raw]


def call_frame(item: bytes) -> str:
    """The frame of a function call."""
    return _text({name: raw for name, raw in _decode_fields(item).items() if name not in _FILLED})


def message_frame(item: bytes, said: str) -> str | None:
    """The frame of a message that said this; None if the item says something else."""
    fields = _decode_fields(item)
    try:
        parts = _decode_parts(fields["content"])
        texts, holes = _take_texts(parts)
    except (KeyError, msgspec.DecodeError):
        return None
    if "".join(texts) != said:
        return None
    fields["content"] = msgspec.Raw(_encode(holes))
    return _text(fields)


def _take_texts(parts: Sequence[Mapping[str, msgspec.Raw]]) -> tuple[list[str], list[Fields]]:
    texts, holes = [], []
    for part in parts:
        hole = {name: raw for name, raw in part.items() if name not in _LEFT_OUT}
        for name in _TEXTS:
            if name in hole:
                texts.append(_decode_text(hole[name]))
                hole[name] = msgspec.Raw(b"%d" % len(texts[-1]))
        holes.append(hole)
    return texts, holes


def kind_of(artefact: str) -> str:
    """The item type of an artefact; empty if it has none."""
    try:
        return _decode_text(_decode_fields(artefact.encode()).get("type", b'""'))
    except msgspec.DecodeError:
        return ""


def filled_call(frame: str, filling: bytes) -> bytes:
    """The function call again; `filling` is what stands in the reply, without braces."""
    return b"%b,%b}" % (frame.encode()[:-1], filling)


def filled_message(frame: str, text: str) -> bytes | None:
    """The message again; None if `text` is not as long as the frame says."""
    fields = _decode_fields(frame.encode())
    parts, start = _decode_parts(fields["content"]), 0
    for part in parts:
        for name in _TEXTS:
            if name in part:
                end = start + int(bytes(part[name]))
                part[name] = msgspec.Raw(quote(text[start:end]))
                start = end
    if start != len(text):
        return None
    fields["content"] = msgspec.Raw(_encode(parts))
    return _encode(fields)


def phase_of(frame: str) -> bytes:
    """The phase of a message as a JSON field with a comma in front; nothing if it has none."""
    phase = _decode_fields(frame.encode()).get("phase")
    return b"" if phase is None or bytes(phase) == b"null" else b',"phase":%b' % bytes(phase)


def _text(fields: Fields) -> str:
    return _encode(fields).decode()
