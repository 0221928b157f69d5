"""A reply → the input items that give it back.

Rules of the service: a reasoning item stands directly in front of the item that it led to, and a group of both is never
split; items are given back in their order. Reasoning is encrypted for the model that wrote it. Source: the vendor's
guide to reasoning models, and recorded refusals.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from deepstrike.providers.dialects.json_text import quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.responses.items import filled_call, filled_message, kind_of, phase_of
from deepstrike.wire.message import CallBlock, Notice, Opaque, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.message import AssistantBlock, AssistantPart

_LONGEST_ID = 64


class Origin(NamedTuple):
    """Whose artefacts may be sent: those of this source and model."""

    source: str
    model: str


def assistant_items(block: AssistantBlock, origin: Origin | None) -> tuple[list[bytes], Notice | None]:
    """The items of a reply, and what there is to tell of those left out. None at all for a reply with nothing in it."""
    writing = _Writing(own=origin == (block.dialect, block.model))
    parts = block.parts
    for place, part in enumerate(parts):
        if isinstance(part, Text):
            writing.text(part.text, _frame_behind(parts, place))
        elif isinstance(part, CallBlock):
            writing.call(part, _frame_behind(parts, place))
        elif isinstance(part, Opaque) and not _is_frame(part):
            writing.whole(part)
    return writing.items, _notice(block, writing)


class _Writing:
    """The items so far; reasoning waits for the item that it led to."""

    __slots__ = ("items", "left_out", "own", "waiting")

    def __init__(self, *, own: bool) -> None:
        self.own = own
        self.items: list[bytes] = []
        self.waiting: list[bytes] = []
        self.left_out = 0

    def text(self, text: str, frame: Opaque | None) -> None:
        item = filled_message(frame.text, text) if frame is not None and self.own else None
        if item is None and text:
            phase = b"" if frame is None else phase_of(frame.text)
            item = b'{"role":"assistant","content":%b%b}' % (quote(text), phase)
        if item is not None:
            self._add(item)

    def call(self, call: CallBlock, frame: Opaque | None) -> None:
        filling = b'"call_id":%b,"name":%b,"arguments":%b' % (
            quote(wire_id(call.id)),
            quote(wire_name(call.name)),
            quote(call.args_text),
        )
        plain = b'{"type":"function_call",%b}' % filling
        self._add(filled_call(frame.text, filling) if frame is not None and self.own else plain)

    def whole(self, artefact: Opaque) -> None:
        if not self.own:
            self.left_out += 1
        elif kind_of(artefact.text) == "reasoning":
            self.waiting.append(artefact.text.encode())
        else:
            self._add(artefact.text.encode())

    def _add(self, item: bytes) -> None:
        self.items += self.waiting
        self.waiting.clear()
        self.items.append(item)


def _is_frame(part: Opaque) -> bool:
    return kind_of(part.text) in ("message", "function_call")


def _frame_behind(parts: Sequence[AssistantPart], place: int) -> Opaque | None:
    """The frame of the part in this place: the next artefact, with no text or call in between."""
    kind = "function_call" if isinstance(parts[place], CallBlock) else "message"
    for part in parts[place + 1 :]:
        if isinstance(part, Opaque):
            return part if kind_of(part.text) == kind else None
        if isinstance(part, Text | CallBlock):
            return None
    return None


def _notice(block: AssistantBlock, writing: _Writing) -> Notice | None:
    if writing.left_out:
        whose = f"{block.model or 'another model'} ({block.dialect or 'unknown'})"
        return Notice("artefact_dropped", f"reasoning of {whose} is not sent: only the model that wrote it can read it")
    if writing.waiting:
        return Notice("artefact_dropped", "reasoning is not sent: the item that it led to is no longer there")
    return None


def wire_id(call_id: str) -> str:
    """The call id itself where the service takes it (at most 64 characters), else a hash of it, always the same one."""
    if 0 < len(call_id) <= _LONGEST_ID and call_id.isprintable():
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
