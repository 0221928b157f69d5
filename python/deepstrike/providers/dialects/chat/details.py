"""`reasoning_details`: pieces of reasoning that must go back as they came, put together from their fragments.

Fragments of one type and index are one entry: its texts and summaries are joined, of everything else the last value
counts. Without an index a fragment belongs to the entry before it if both are texts or summaries. Source: OpenRouter's
and MiniMax's documents on preserving reasoning, and recorded traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.json_text import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

_Entry = dict[str, msgspec.Raw]
_JOINED = ("text", "summary")
_NULL = b"null"
_decode = msgspec.json.Decoder(list[_Entry]).decode
_decode_text = msgspec.json.Decoder(str).decode


class Details:
    """The entries of one answer, in the order in which they began."""

    __slots__ = ("_entries", "_pieces")

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._pieces: list[dict[str, list[str]]] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, raw: bytes) -> str:
        """Take the fragments of one chunk; gives the readable reasoning in them. What is no list of objects is none."""
        try:
            fragments = _decode(raw)
        except msgspec.DecodeError:
            return ""
        return "".join(map(self._add, fragments))

    def text(self) -> str:
        """The entries as a JSON list."""
        return f"[{','.join(map(self._entry, range(len(self._entries))))}]"

    def _add(self, fragment: _Entry) -> str:
        at = _home(fragment, self._entries)
        if at is None:
            at = len(self._entries)
            self._entries.append({})
            self._pieces.append({})
        entry, pieces, said = self._entries[at], self._pieces[at], ""
        for name, value in fragment.items():
            text = _text(value) if name in _JOINED else None
            if text is not None:
                pieces.setdefault(name, []).append(text)
                said += text
            if name not in entry or bytes(value) != _NULL:
                entry[name] = value
        return said

    def _entry(self, at: int) -> str:
        pieces = self._pieces[at]
        fields = (
            (name, quote("".join(pieces[name])) if name in pieces else bytes(value))
            for name, value in self._entries[at].items()
        )
        return "{" + ",".join(f"{quote(name).decode()}:{value.decode()}" for name, value in fields) + "}"


def _home(fragment: _Entry, entries: Sequence[_Entry]) -> int | None:
    """The entry that a fragment belongs to."""
    kind = _bytes(fragment, "type")
    if index := _bytes(fragment, "index"):
        same = (at for at, it in enumerate(entries) if (_bytes(it, "type"), _bytes(it, "index")) == (kind, index))
        return next(same, None)
    last = entries[-1] if entries else {}
    joins = any(name in last and name in fragment for name in _JOINED)
    return len(entries) - 1 if joins and _bytes(last, "type") == kind and not _bytes(last, "index") else None


def _bytes(entry: _Entry, name: str) -> bytes:
    value = bytes(entry.get(name, b""))
    return b"" if value == _NULL else value


def _text(value: msgspec.Raw) -> str | None:
    try:
        return _decode_text(value)
    except msgspec.DecodeError:
        return None
