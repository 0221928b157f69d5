"""Puts the blocks of an answer together from their pieces.

Rules, from the vendor's documents and recorded traffic: the index says which block a piece belongs to; a tool's input
comes as pieces of JSON text, or whole with the opening; a thinking block is worth nothing without its signature; what
we do not know is kept word for word, because the service wants it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.base import Artefact, ToolCall
from deepstrike.providers.dialects.messages.wire import ABSENT, Opening, decode_fields, decode_odd, is_given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.base import ModelEvent

BOUNDARY = "null"
"""The artefact between two text blocks that follow one another: without it they would come back as one."""

_encode = msgspec.json.Encoder().encode
_EMPTY = (b"", b"null", b"{}")


class Block:
    """A block of the answer, open or closed."""

    __slots__ = ("_citations", "_opening", "_pieces", "_raw", "_signature", "kind")

    def __init__(self, raw: bytes, opening: Opening) -> None:
        self.kind = opening.type
        self._raw = raw
        self._opening = opening
        self._pieces: list[str] = []
        self._signature: list[str] = [opening.signature or ""]
        self._citations: list[msgspec.Raw] = []

    def add(self, piece: str) -> None:
        """More of its text, thinking or input."""
        self._pieces.append(piece)

    def sign(self, piece: str) -> None:
        """More of its signature."""
        self._signature.append(piece)

    def add_odd(self, payload: bytes) -> None:
        """A delta of an unknown kind: a citation is kept, texts are joined to the field of their name, all else set."""
        fields = decode_odd(payload).delta
        fields.pop("type", None)
        if (citation := fields.pop("citation", None)) is not None:
            self._citations.append(citation)
        if fields:
            self._raw = _laid_over(self._raw, fields)

    def close(self, source: str, names: Mapping[str, str], *, cut: bool, signed: bool) -> list[ModelEvent]:
        """What the whole block says beyond its deltas. `signed`: thinking needs a signature to be sent back."""
        if self.kind == "tool_use":
            name = self._opening.name or ""
            return [ToolCall(self._opening.id or "", names.get(name, name), self._input(cut))]
        text = self._replayed(signed)
        return [] if text is None else [Artefact(source, text)]

    def _input(self, cut: bool) -> str:
        text = "".join(self._pieces)
        if text.strip():
            return text
        given = bytes(self._opening.input)
        if given not in _EMPTY:
            return given.decode("utf-8", "replace")
        return "" if cut else "{}"

    def _replayed(self, signed: bool) -> str | None:
        if self.kind == "text":
            return self._cited_text()
        if self.kind == "thinking":
            return self._thinking(signed)
        text = "".join(self._pieces).encode("utf-8", "replace")
        if not text.strip():
            return self._raw.decode("utf-8", "replace")
        # An input cut by the output limit would spoil every request that it stands in.
        return _laid_over(self._raw, {"input": msgspec.Raw(text)}).decode("utf-8", "replace") if _whole(text) else None

    def _thinking(self, signed: bool) -> str | None:
        signature = "".join(self._signature)
        if signed and not signature:
            return None
        thinking = (self._opening.thinking or "") + "".join(self._pieces)
        block = {"type": "thinking", "thinking": thinking, **({"signature": signature} if signature else {})}
        return _encode(block).decode()

    def _cited_text(self) -> str | None:
        """A text with citations takes the place of the plain one."""
        given = self._opening.citations
        if not self._citations and bytes(given or ABSENT) in (b"", b"null", b"[]"):
            return None
        text = (self._opening.text or "") + "".join(self._pieces)
        citations: object = self._citations or given
        return _encode({"type": "text", "text": text, "citations": citations}).decode()


def _whole(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _laid_over(raw: bytes, fields: Mapping[str, msgspec.Raw]) -> bytes:
    """`raw` with these fields; a text behind a text is joined to it."""
    block = decode_fields(raw)
    for name, value in fields.items():
        before = block.get(name, ABSENT)
        if name != "input" and is_given(before) and bytes(before)[:1] == b'"' and bytes(value)[:1] == b'"':
            value = msgspec.Raw(bytes(before)[:-1] + bytes(value)[1:])
        block[name] = value
    return _encode(block)
