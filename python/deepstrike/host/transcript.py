"""Records as text that a model can read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.records import decode_record
from deepstrike.wire.event import CallRef, Replied, Settled, SignalledEvent, Started, StateChanged
from deepstrike.wire.message import File, Image, Opaque, RecordedCall, Text, Thinking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.event import AnyEvent
    from deepstrike.wire.message import Part, RecordedPart


def transcript(records: Sequence[bytes], first: int, last: int) -> str:
    """What was said and done in the records `first` to `last`; of one result alone just its content.

    An image or file is told of with the reference that reads it, unless its record is the only one.
    """
    if first == last:
        event = decode_record(records[first]).event
        if isinstance(event, Settled):
            return content(event.result.parts)
        return _told(records, event)
    told = (_told(records, decode_record(records[seq]).event, f'; recall("{seq}")') for seq in range(first, last + 1))
    return "\n".join(text for text in told if text)


def attachments(record: bytes) -> tuple[Image | File, ...]:
    """The images and files in what the user said, or in what a call came to."""
    event = decode_record(record).event
    match event:
        case Started(goal=parts):
            pass
        case Settled(result=result):
            parts = result.parts
        case _:
            return ()
    return tuple(part for part in parts if not isinstance(part, Text))


def _told(records: Sequence[bytes], event: AnyEvent, way: str = "") -> str:
    match event:
        case Started(goal=goal, feedback=feedback):
            return "\n".join([f"user: {content(goal, way)}", *(f"feedback: {said.text}" for said in feedback)])
        case Replied(parts=parts):
            return "\n".join(text for part in parts if (text := _said(part)))
        case Settled(call=call, result=result):
            outcome = f"failed ({result.error_kind})" if result.error_kind else "gave"
            return f"{_name(records, call)} {outcome}: {content(result.parts, way)}"
        case SignalledEvent(signal=signal):
            return f"signal {signal.kind}: {signal.payload}"
        case StateChanged(text=text):
            return text
        case _:
            return ""


def _said(part: RecordedPart) -> str:
    match part:
        case Text(text=text):
            return f"assistant: {text}" if text else ""
        case RecordedCall(name=name, args_text=arguments):
            return f"assistant calls {name}({arguments})"
        case Thinking() | Opaque():
            return ""


def _name(records: Sequence[bytes], call: CallRef) -> str:
    reply = decode_record(records[call.reply]).event
    if isinstance(reply, Replied):
        names = [part.name for part in reply.parts if isinstance(part, RecordedCall)]
        return names[call.index]
    return "a tool"


def content(parts: Sequence[Part], way: str = "") -> str:
    """The text of parts, with a word for what is none; `way` says how to get at that."""
    return "\n".join(_shown(part, way) for part in parts)


def _shown(part: Part, way: str) -> str:
    match part:
        case Text(text=text):
            return text
        case Image(media_type=kind, url=url):
            return f"[image {url or kind}{way}]"
        case File(media_type=kind, name=name):
            return f"[file {name or kind}{way}]"
