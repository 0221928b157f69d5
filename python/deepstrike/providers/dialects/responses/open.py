"""The items of an answer that are still being written, and which ones are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.providers.dialects.responses.wire import Event, Item

_NO_ARGUMENTS = frozenset({"", "null"})
_decode_text = msgspec.json.Decoder(str).decode


class _Open:
    __slots__ = ("pieces", "raw", "summaries", "thought")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.pieces: list[str] = []
        self.thought = False
        self.summaries = 0


class OpenItems:
    """Keeps apart what comes for several items, by `output_index`; a server that sends none writes one at a time."""

    __slots__ = ("_at", "_last", "_open", "_whole", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self._open: dict[int, _Open] = {}
        self._whole: set[tuple[str, str]] = set()
        self._at = -1
        self._last = _Open(b"")

    def begin(self, event: Event, item: Item | None) -> None:
        """An item was opened. Only a call can be made whole from its pieces, so only its beginning is kept."""
        at = self._place(event)
        raw = bytes(event.item) if item is not None and item.type == "function_call" else b""
        self._at, self._last = at, _Open(raw)
        self._open[at] = self._last

    def add(self, event: Event, text: str) -> None:
        """A piece of text, refusal or arguments."""
        self._of(event).pieces.append(text)

    def think(self, event: Event) -> str:
        """A piece of thinking comes; the gap to put before it, where it begins another part."""
        item = self._of(event)
        summary = event.summary_index or 0
        begins = item.thought and summary > item.summaries
        item.thought, item.summaries = True, summary
        return "\n\n" if begins else ""

    def end(self, event: Event) -> str | None:
        """The item is whole: what came of it in pieces, None if thinking did."""
        return self.end_at(self._place(event))

    def end_at(self, at: int) -> str | None:
        """As `end`, for the item in this place of the answer."""
        item = self._last if at == self._at else self._open.get(at)
        self._open.pop(at, None)
        if at == self._at:
            self._at, self._last = -1, _Open(b"")
        if item is None:
            return ""
        return None if item.thought else "".join(item.pieces)

    def left(self) -> Iterator[tuple[bytes, str]]:
        """The calls that were opened and never ended, each with its arguments as they came."""
        for item in self._open.values():
            if item.raw and item.pieces:
                yield item.raw, "".join(item.pieces)

    def is_new(self, item: Item) -> bool:
        """Whether this item was not taken yet; it is now. Items without any id cannot be told apart, and are new."""
        key = (item.id or "", item.call_id or "")
        if key in self._whole:
            return False
        self.taken += 1
        if any(key):
            self._whole.add(key)
        return True

    def _of(self, event: Event) -> _Open:
        at = event.output_index
        if at is None or at == self._at:
            return self._last
        item = self._open.get(at)
        if item is None:
            item = self._open[at] = _Open(b"")
        self._at, self._last = at, item
        return item

    def _place(self, event: Event) -> int:
        return self._at if event.output_index is None else event.output_index


def arguments_text(raw: bytes, streamed: str, *, cut: bool) -> str:
    """The arguments of a call as the model wrote them. None at all means `{}`, unless the call was cut."""
    text = streamed
    if raw[:1] == b'"':
        text = _decode_text(raw) or streamed
    elif raw and raw != b"null":
        text = raw.decode()
    return "{}" if not cut and text.strip() in _NO_ARGUMENTS else text
