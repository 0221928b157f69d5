"""Records into the words of the stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from deepstrike.records import decode_record
from deepstrike.signals.signal import from_wire
from deepstrike.stream import (
    ContextCompressedEvent,
    ErrorEvent,
    NoticeEvent,
    PermissionRequestEvent,
    SignalEvent,
    ToolCallEvent,
    ToolDeniedEvent,
    ToolResultEvent,
    ToolSuspendEvent,
    UsageEvent,
)
from deepstrike.wire.event import (
    Allow,
    Answered,
    Ask,
    CallRef,
    Compressed,
    Ended,
    Judged,
    Refuse,
    Replied,
    Settled,
    SignalledEvent,
    Summarized,
    Suspended,
)
from deepstrike.wire.input import Deny, Fault
from deepstrike.wire.message import Err, File, Image, Ok, RecordedCall, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepstrike.stream import StreamEvent
    from deepstrike.wire.message import Part, Usage
    from deepstrike.wire.record import Record

_MICRO = 1_000_000
_json = msgspec.json.Decoder(object).decode


# How the kernel writes a call that is allowed and one that begins. Quotes within texts are escaped, so no text of a
# user's or a model's can look like it.
_ALLOWED = b'"verdict":{"type":"allow"}'
_BEGUN = b'"event":{"type":"begun",'
# The marks stand in front of whatever can be long.
_FRONT = 256
_REPLIED = b'"event":{"type":"replied",'
_ASKED = b'"verdict":{"type":"ask",'


def says_nothing(line: bytes) -> bool:
    """Whether a record surely means nothing to the caller: half of them, which need not even be read."""
    return line.find(_ALLOWED, 0, _FRONT) >= 0 or line.find(_BEGUN, 0, _FRONT) >= 0


class Narrator:
    """Turns the records of one run into its events, in order. Remembers the calls of the newest reply.

    `_asked` are the permission requests of that reply.
    """

    __slots__ = ("_asked", "_calls", "_path", "_reply")

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        """`path` names the agents from the root down to the one whose records these are."""
        self._path = path
        self._reply = -1
        self._calls: list[RecordedCall] = []
        self._asked: set[int] = set()

    @classmethod
    def after(cls, records: Sequence[bytes], path: tuple[str, ...] = ()) -> Narrator:
        """One that has heard `records`: it knows the calls whose results are still to come."""
        narrator = cls(path)
        told: list[bytes] = []
        for line in reversed(records):
            if _REPLIED in line or _ASKED in line:
                told.append(line)
            if _REPLIED in line:
                break
        for line in reversed(told):
            narrator.narrate(decode_record(line))
        return narrator

    def narrate(self, record: Record) -> Iterable[StreamEvent]:
        """The events that one record means to the caller; most have one or none."""
        event = record.event
        match event:
            case Replied():
                return self._replied(record.seq, event)
            case Settled():
                return (self._settled(event),)
            case Judged():
                return self._judged(record.seq, event)
            case Suspended(agent=False):
                call = self._call(event.call)
                asked = request_id(record.seq, self._path)
                return (ToolSuspendEvent(call.id, call.name, asked, json_value(event.payload)),)
            case Answered(answer=Deny(reason=reason)) if event.effect in self._asked:
                call = self._call(event.call)
                return (ToolDeniedEvent(call.id, call.name, "approval", reason),)
            case SignalledEvent():
                return (SignalEvent(from_wire(event.signal)),)
            case Compressed():
                return (_compressed(event),)
            case Summarized():
                return _summarized(event)
            case Ended(status="error", fault=Fault() as fault):
                return (ErrorEvent(fault.message, fault.code, fault.retryable),)
            case _:
                return ()

    def _judged(self, seq: int, event: Judged) -> Iterable[StreamEvent]:
        match event.verdict:
            case Refuse(unfit=True):
                return ()  # its result tells
            case Refuse(stage=stage, reason=reason):
                call = self._call(event.call)
                return (ToolDeniedEvent(call.id, call.name, stage, reason),)
            case Ask(reason=reason):
                self._asked.add(seq)
                call = self._call(event.call)
                return (
                    PermissionRequestEvent(request_id(seq, self._path), call.id, call.name, _arguments(call), reason),
                )
            case Allow():
                return ()

    def _replied(self, seq: int, event: Replied) -> Iterable[StreamEvent]:
        self._reply = seq
        self._asked.clear()
        self._calls = calls = [part for part in event.parts if isinstance(part, RecordedCall)]
        spent = _spent(event.usage, event.cost)
        if not event.complete:
            return (spent,)
        return [spent, *[ToolCallEvent(call.id, call.name, _arguments(call)) for call in calls]]

    def _settled(self, event: Settled) -> ToolResultEvent:
        call = self._call(event.call)
        kind = event.result.error_kind
        return ToolResultEvent(call.id, text_of(event.result.parts), bool(kind), call.name, kind or None)

    def _call(self, ref: CallRef) -> RecordedCall:
        if ref.reply == self._reply and ref.index < len(self._calls):
            return self._calls[ref.index]
        return RecordedCall(id="", name="", args_text="", validated=Ok())


def _spent(usage: Usage, cost: int | None) -> UsageEvent:
    dollars = None if cost is None else cost / _MICRO
    return UsageEvent(usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning, dollars)


def _summarized(event: Summarized) -> Iterable[StreamEvent]:
    """What it took, and why there is none."""
    if event.usage.input or event.usage.output:
        yield _spent(event.usage, event.cost)
    if event.fault is not None:
        yield NoticeEvent("summary_failed", f"what left the prompt has no summary: {event.fault.message}")


def text_of(parts: tuple[Part, ...]) -> str:
    """The text of content parts; anything else is named in brackets."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "\n".join(_word(part) for part in parts)


def _word(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image):
        return f"[image {part.media_type or part.url}]"
    if isinstance(part, File):
        return f"[file {part.name or part.media_type}]"
    raise AssertionError(part)


def _compressed(event: Compressed) -> ContextCompressedEvent:
    shortened = tuple(map(str, event.shortened))
    before, after = event.tokens_before, event.tokens
    return ContextCompressedEvent(event.stage, before, after, event.left, event.stages, event.gone, shortened)


def _arguments(call: RecordedCall) -> Mapping[str, object]:
    validated = call.validated
    text = call.args_text if isinstance(validated, Err) or validated.text is None else validated.text
    value = json_value(text) if text else {}
    return value if isinstance(value, dict) else {}


def request_id(effect: int, path: tuple[str, ...] = ()) -> str:
    """How the question of an AskUser is called outside: the same in every process, since an effect's id is.

    `path` names the agents from the root down to the one that asks.
    """
    return "/".join((*path, str(effect)))


def json_value(text: str) -> object:
    """The value of JSON text with every number as large as it is; None for what is no JSON."""
    try:
        return _json(text)
    except (msgspec.MsgspecError, RecursionError):
        pass  # numbers beyond a double, which the standard reader takes
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
