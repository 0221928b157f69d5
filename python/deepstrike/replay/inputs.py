"""From records back to the inputs that made them.

The kernel makes a batch of records from each input. The first record of a batch shows which input that was, since it
holds all that the input said; the few that could have come from several are listed with every one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.wire.event import (
    Answered,
    Begun,
    CallRef,
    Ended,
    Failed,
    Judged,
    PolicyChanged,
    Replied,
    Resumed,
    Settled,
    SignalledEvent,
    Started,
    Summarized,
    Suspended,
)
from deepstrike.wire.input import (
    Answer,
    Clock,
    Failure,
    Input,
    Interrupt,
    Notify,
    Reply,
    Result,
    Resume,
    SetPolicy,
    Start,
    Summary,
    Suspend,
)
from deepstrike.wire.message import CallPart, RecordedCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deepstrike.wire.event import AnyEvent
    from deepstrike.wire.input import Fault
    from deepstrike.wire.message import RecordedPart, ReplyPart
    from deepstrike.wire.record import Record

    Lines = Sequence[Record | None]

_CLOSING = frozenset({"withdrawn", "outcome_unknown", "cancelled", "not_run"})
"""How the kernel words the results of calls that it closes itself."""


def inputs_at(records: Lines, at: int, begun: Mapping[CallRef, int]) -> tuple[Input, ...]:
    """The inputs whose batch record `at` may begin, the likeliest first; () where no input of this version makes it.

    `records` holds None for a record of a kind that is not known here; `begun` tells the RunTool effect of each call
    that was begun.
    """
    record = records[at]
    event = None if record is None else record.event
    match event:
        case Started():
            return (_start(event),)
        case Resumed():
            return (Resume(event.config),)
        case Replied():
            return (_reply(event, _fault_behind(records, at)),)
        case Failed():
            return (Failure(event.effect, event.fault),)
        case Settled():
            return _of_settled(records, at, begun)
        case Suspended() if event.call in begun:
            return (Suspend(begun[event.call], event.payload),)
        case Answered():
            return (Answer(event.effect, event.answer),)
        case SignalledEvent():
            return (_notify(records, at),)
        case _:
            return _from_beside(event)


def _from_beside(event: AnyEvent | None) -> tuple[Input, ...]:
    """What came from neither the model nor a tool."""
    match event:
        case PolicyChanged():
            return (SetPolicy(event.policy),)
        case Ended():
            return (_stop(event),)
        case Summarized():
            return (Summary(event.effect, event.text, event.usage, event.price, event.fault),)
        case Judged() | Begun():
            return (Clock(),)
        case _:
            return ()


def _notify(records: Lines, at: int) -> Notify:
    """Signals that stand together came together, or might as well have; one that renews a call ends what came."""
    first, *more = _together(records, at)
    return Notify(first.signal, tuple(event.signal for event in more), any(event.renews for event in (first, *more)))


def _together(records: Lines, at: int) -> Iterator[SignalledEvent]:
    first = records[at]
    for record in records[at:]:
        if record is None or first is None or record.at != first.at or not isinstance(record.event, SignalledEvent):
            return
        yield record.event
        if record.event.renews:
            return


def _start(event: Started) -> Start:
    return Start(event.goal, event.config, event.criteria, tuple(said.text for said in event.feedback))


def _stop(event: Ended) -> Interrupt | Clock:
    if event.status == "user_abort" and event.fault is not None:
        return Interrupt(event.fault.message)
    return Clock()


def _reply(event: Replied, fault: Fault | None) -> Reply:
    return Reply(
        effect=event.effect,
        parts=tuple(map(_as_handed_in, event.parts)),
        finish=event.finish,
        dialect=event.dialect,
        model=event.model,
        usage=None if event.estimated else event.usage,
        complete=event.complete,
        output=event.output,
        fault=fault,
        notices=event.notices,
        price=event.price,
    )


def _as_handed_in(part: RecordedPart) -> ReplyPart:
    if not isinstance(part, RecordedCall):
        return part
    wire_id = part.id if part.wire_id is None else part.wire_id
    return CallPart(wire_id, part.name, part.args_text, part.validated)


def _fault_behind(records: Lines, at: int) -> Fault | None:
    """Why an incomplete reply stopped: its Failed stands directly behind it. None where it was stopped on purpose."""
    record, behind = records[at], records[at + 1] if at + 1 < len(records) else None
    if record is None or behind is None or not isinstance(record.event, Replied) or record.event.complete:
        return None
    failed = behind.event
    return failed.fault if isinstance(failed, Failed) and failed.effect == record.event.effect else None


def _of_settled(records: Lines, at: int, begun: Mapping[CallRef, int]) -> tuple[Input, ...]:
    """A result from outside, or the first of the calls that were closed by what follows them."""
    record = records[at]
    if record is None or not isinstance(record.event, Settled):
        return ()
    event = record.event
    results: tuple[Input, ...] = (Result(begun[event.call], event.result, event.spent),) if event.call in begun else ()
    closings = _closing_behind(records, at)
    return (*closings, *results) if event.result.error_kind in _CLOSING else (*results, *closings)


def _closing_behind(records: Lines, at: int) -> tuple[Input, ...]:
    for record in records[at:]:
        if record is None:
            return ()
        match record.event:
            case Settled():
                continue
            case Started():
                return (_start(record.event),)
            case Ended():
                return (_stop(record.event),)
            case _:
                return ()
    # The log was cut behind them. How calls are closed does not depend on which goal or reason came next.
    before = (record.event for record in reversed(records[:at]) if record is not None)
    goal = next((event for event in before if isinstance(event, Started)), None)
    return (Interrupt(""),) if goal is None else (Interrupt(""), _start(goal))
