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
    """What was said and done in the records `first` to `last`; of one result alone just its content."""
    if first == last:
        event = decode_record(records[first]).event
        if isinstance(event, Settled):
            return content(event.result.parts)
    told = (_told(records, decode_record(line).event) for line in records[first : last + 1])
    return "\n".join(text for text in told if text)


def _told(records: Sequence[bytes], event: AnyEvent) -> str:
    match event:
        case Started(goal=goal, feedback=feedback):
            return "\n".join([f"user: {content(goal)}", *(f"feedback: {said.text}" for said in feedback)])
        case Replied(parts=parts):
            return "\n".join(text for part in parts if (text := _said(part)))
        case Settled(call=call, result=result):
            outcome = f"failed ({result.error_kind})" if result.error_kind else "gave"
            return f"{_name(records, call)} {outcome}: {content(result.parts)}"
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


def content(parts: Sequence[Part]) -> str:
    """The text of parts, with a word for what is none."""
    return "\n".join(map(_shown, parts))


def _shown(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Image(media_type=kind, url=url):
            return f"[image {url or kind}]"
        case File(media_type=kind, name=name):
            return f"[file {name or kind}]"
