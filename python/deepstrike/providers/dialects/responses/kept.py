"""The whole items of an answer → model events, kept back until text follows them or the answer ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.base import Artefact, ModelEvent, ToolCall
from deepstrike.providers.dialects.responses.items import call_frame, message_frame
from deepstrike.providers.dialects.responses.open import OpenItems, arguments_text
from deepstrike.providers.dialects.responses.wire import ContentPart, Item, mend, read_item
from deepstrike.stream import TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec


class KeptItems:
    """Calls and artefacts in their order. `damaged` says that an item could not be read, `calls` counts whole calls.

    `names` maps wire names of tools back to their own, `source` is written into the artefacts; with `expose` off no
    `ThinkingDelta` is made. `open` knows what came of an item in pieces.
    """

    __slots__ = ("_cut_call", "_expose", "_held", "_loose", "_names", "_source", "calls", "damaged", "open")

    def __init__(self, names: Mapping[str, str], source: str, *, expose: bool) -> None:
        self.open = OpenItems()
        self.calls = 0
        self.damaged = False
        self._names = names
        self._source = source
        self._expose = expose
        self._held: list[ModelEvent] = []
        self._loose = 0  # reasoning at the end of `_held` that nothing has followed yet
        self._cut_call: ToolCall | None = None

    def release(self, out: list[ModelEvent]) -> None:
        """Tell what was kept back: text follows it now."""
        if self._held:
            out.extend(self._held)
            self._held.clear()
            self._loose = 0

    def rest(self, *, cut: bool) -> list[ModelEvent]:
        """What is still kept back at the end, without reasoning that led to nothing. Of an answer that was `cut` by the
        output limit, the cut call is the last one."""
        rest = self._held[: len(self._held) - self._loose]
        return [*rest, self._cut_call] if cut and self._cut_call is not None else rest

    def take(self, raw: bytes, streamed: str | None, out: list[ModelEvent]) -> None:
        """An item as a whole. `streamed` is what came of it in pieces, None if its thinking was shown."""
        raw = mend(raw) or b""  # what is wrong in fields that nobody reads shows only now
        item = read_item(raw)
        if item is None:
            self.damaged = True
        elif not self.open.is_new(item):
            return
        elif item.type == "reasoning":
            self._reasoning(item, raw, streamed is None, out)
        elif item.type == "message":
            self._message(item, raw, streamed or "", out)
        elif item.type == "function_call":
            self._call(item, raw, streamed or "")
        else:
            self._hold(self._artefact(raw))

    def recover(self, output: Sequence[msgspec.Raw], out: list[ModelEvent]) -> None:
        """Take the items whose end did not come from the whole response.

        One without an id may be one that did come, so it is taken only where none came at all.
        """
        if output:
            self.damaged = False
        none_came = self.open.taken == 0
        if self.open.taken < len(output):
            for place, raw in enumerate(output):
                item = read_item(bytes(raw))
                if item is None or none_came or item.id or item.call_id:
                    self.take(bytes(raw), self.open.end_at(place), out)

    def close(self, *, cut: bool) -> None:
        """Take the calls that were opened and never ended; they are whole unless the answer was `cut`."""
        for opened, pieces in self.open.left():
            raw = mend(opened) or b""
            item = read_item(raw)
            if item is not None and self.open.is_new(item):
                item.status = "incomplete" if cut else "completed"
                self._call(item, raw, pieces)

    def _hold(self, *events: ModelEvent) -> None:
        self._held.extend(events)
        self._loose = 0

    def _artefact(self, raw: bytes) -> Artefact:
        return Artefact(self._source, raw.decode())

    def _reasoning(self, item: Item, raw: bytes, shown: bool, out: list[ModelEvent]) -> None:
        text = "\n\n".join(part.said for part in item.summary or _parts(item) if part.said)
        if text and not shown and self._expose:
            out.append(ThinkingDelta(text))
        if item.encrypted_content or item.content:  # else only the service's store could know what it was
            self._held.append(self._artefact(raw))
            self._loose += 1

    def _message(self, item: Item, raw: bytes, streamed: str, out: list[ModelEvent]) -> None:
        said = "".join(part.said for part in _parts(item))
        rest = said[len(streamed) :] if said.startswith(streamed) else ""
        if rest:
            self.release(out)
            out.append(TextDelta(rest))
        frame = message_frame(raw, streamed + rest)
        if frame is not None:
            self._hold(Artefact(self._source, frame))

    def _call(self, item: Item, raw: bytes, streamed: str) -> None:
        name = item.name or ""
        cut = item.status == "incomplete"
        text = arguments_text(bytes(item.arguments), streamed, cut=cut)
        call = ToolCall(item.call_id or item.id or "", self._names.get(name, name), text)
        if cut:
            self._cut_call = call
        else:
            self.calls += 1
            self._hold(call, Artefact(self._source, call_frame(raw)))


def _parts(item: Item) -> Sequence[ContentPart]:
    return [] if item.content is None or isinstance(item.content, str) else item.content
