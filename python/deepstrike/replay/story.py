"""A session as people tell it: goals, turns, calls and what became of them, folded from the records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepstrike.errors import CorruptLog
from deepstrike.replay.retrace import read_records
from deepstrike.wire.event import (
    Answered,
    AnyEvent,
    Begun,
    CallRef,
    Ended,
    Judged,
    Replied,
    Settled,
    Started,
    Suspended,
    Verdict,
)
from deepstrike.wire.message import Ok, RecordedCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.input import AnswerBody
    from deepstrike.wire.message import ToolResult
    from deepstrike.wire.record import Record


@dataclass(frozen=True, slots=True)
class Question:
    """A suspension of a tool: the seq of its record, its payload as JSON text, the answer if there is one."""

    seq: int
    payload: str
    answer: AnswerBody | None


@dataclass(frozen=True, slots=True)
class CallStory:
    """A call of the model.

    arguments: JSON text, validated where they passed. verdicts: in order, one for each time that it was judged.
    begun: how often its tool began. result, settled: what it came to and the seq of that record; None while it is open.
    """

    seq: int
    index: int
    id: str
    name: str
    arguments: str
    verdicts: tuple[Verdict, ...]
    begun: int
    questions: tuple[Question, ...]
    result: ToolResult | None
    settled: int | None


@dataclass(frozen=True, slots=True)
class TurnStory:
    """One reply of the model and its calls."""

    seq: int
    at: int
    reply: Replied
    calls: tuple[CallStory, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """What happened between the turns: a resume, a signal, a failed model call, another policy, a new epoch.

    `event` is None for a record of a kind that is not known here.
    """

    seq: int
    at: int
    event: AnyEvent | None


@dataclass(frozen=True, slots=True)
class GoalStory:
    """One goal: how it began, what happened in order, how it ended (None while it has not). Times are milliseconds."""

    seq: int
    at: int
    started: Started
    entries: tuple[TurnStory | Remark, ...]
    ended: Ended | None
    until: int

    @property
    def turns(self) -> tuple[TurnStory, ...]:
        """The turns alone."""
        return tuple(entry for entry in self.entries if isinstance(entry, TurnStory))


@dataclass(frozen=True, slots=True)
class Story:
    """A whole session: its id ("" for an empty log), how many records it has, its goals in order."""

    session_id: str
    records: int
    goals: tuple[GoalStory, ...]


def story_of(lines: Sequence[bytes]) -> Story:
    """Tell a log. Raises `CorruptLog`, or `SessionError` with code `newer_format`."""
    goals: list[_Goal] = []
    for seq, record in enumerate(read_records(lines)):
        if record is not None and isinstance(record.event, Started):
            goals.append(_Goal(seq, record.at, record.event))
        if goals:
            goals[-1].take(seq, record)
    told = tuple(goal.told() for goal in goals)
    return Story(told[0].started.config.session if told else "", len(lines), told)


@dataclass(slots=True)
class _Call:
    seq: int
    index: int
    part: RecordedCall
    verdicts: list[Verdict] = field(default_factory=list)
    begun: int = 0
    questions: list[Question] = field(default_factory=list)
    result: ToolResult | None = None
    settled: int | None = None

    def take(self, seq: int, event: Judged | Begun | Suspended | Answered | Settled) -> None:
        match event:
            case Judged():
                self.verdicts.append(event.verdict)
            case Begun():
                self.begun += 1
            case Suspended():
                self.questions.append(Question(seq, event.payload, None))
            case Answered() if self.questions:
                asked = self.questions[-1]
                self.questions[-1] = Question(asked.seq, asked.payload, event.answer)
            case Settled():
                self.result, self.settled = event.result, seq

    def told(self) -> CallStory:
        part = self.part
        validated = part.validated
        return CallStory(
            seq=self.seq,
            index=self.index,
            id=part.id,
            name=part.name,
            arguments=(validated.text if isinstance(validated, Ok) else None) or part.args_text,
            verdicts=tuple(self.verdicts),
            begun=self.begun,
            questions=tuple(self.questions),
            result=self.result,
            settled=self.settled,
        )


class _Goal:
    """A goal while its records are read."""

    __slots__ = ("_at", "_calls", "_ended", "_entries", "_seq", "_started", "_until")

    def __init__(self, seq: int, at: int, started: Started) -> None:
        self._seq, self._at, self._until = seq, at, at
        self._started = started
        self._entries: list[tuple[int, int, Replied] | Remark] = []
        self._calls: dict[int, list[_Call]] = {}
        self._ended: Ended | None = None

    def take(self, seq: int, record: Record | None) -> None:
        if record is None:
            self._entries.append(Remark(seq, self._until, None))
            return
        self._until = record.at
        event = record.event
        match event:
            case Started():
                return
            case Replied():
                self._replied(seq, record.at, event)
            case Judged() | Begun() | Suspended() | Answered() | Settled():
                # Calls of the goal before are closed in front of this one's Started.
                self._call(event.call).take(seq, event)
            case Ended():
                self._ended = event
            case _:
                self._ended = None  # a resume goes on behind the end
                self._entries.append(Remark(seq, record.at, event))

    def _replied(self, seq: int, at: int, event: Replied) -> None:
        self._entries.append((seq, at, event))
        calls = [part for part in event.parts if isinstance(part, RecordedCall)]
        self._calls[seq] = [_Call(seq, index, part) for index, part in enumerate(calls)]

    def _call(self, ref: CallRef) -> _Call:
        """Raises `CorruptLog` for a call that no reply of this goal has made."""
        calls = self._calls.get(ref.reply, [])
        if ref.index < len(calls):
            return calls[ref.index]
        raise CorruptLog(f"the log does not fold: there is no call {ref.index} of record {ref.reply} in this goal")

    def told(self) -> GoalStory:
        entries = tuple(entry if isinstance(entry, Remark) else self._turn(*entry) for entry in self._entries)
        return GoalStory(self._seq, self._at, self._started, entries, self._ended, self._until)

    def _turn(self, seq: int, at: int, reply: Replied) -> TurnStory:
        return TurnStory(seq, at, reply, tuple(call.told() for call in self._calls[seq]))
