"""Where two sessions part, and why."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from deepstrike.replay.differences import differences
from deepstrike.replay.refs import without_owner
from deepstrike.replay.story import CallStory, GoalStory, Remark, TurnStory, story_of
from deepstrike.wire.agents import Parent
from deepstrike.wire.event import Compressed, Failed, PolicyChanged, Resumed, SignalledEvent
from deepstrike.wire.message import RecordedCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.replay.differences import Difference
    from deepstrike.replay.story import Question, Story
    from deepstrike.wire.agents import Agents
    from deepstrike.wire.event import Replied
    from deepstrike.wire.message import RecordedPart
    from deepstrike.wire.policy import Config


@dataclass(frozen=True, slots=True)
class Parting:
    """The first thing that is not the same in two sessions.

    kind: a stable word: config, goal, criteria, feedback, reply, model, verdict, result, suspension, answer, signal,
        failure, policy, resume, record, end, length.
    turn: how many turns are behind it. left, right: the seq of the record in each session; None where it has none.
    cause: why, in words. differences: the fields that differ.
    """

    kind: str
    turn: int
    left: int | None
    right: int | None
    cause: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two sessions found.

    left, right: their ids. turns: how many turns are the same. parting: the first divergence, None if there is none.
    notes: what differs without changing the course (tokens, time, the order in which parallel calls came back).
    """

    left: str
    right: str
    turns: int
    parting: Parting | None
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both sessions went the same way."""
        return self.parting is None


def compare(left: Sequence[bytes], right: Sequence[bytes]) -> Comparison:
    """Compare two logs: goals, options, replies, verdicts, results, ends, in their order.

    Ignored is what differs by nature: times, session ids, call ids, record numbers, the session in the reference of a
    blob and what a text weighs that has one. Parallel calls are compared call by call, in whichever order they came
    back. Raises `CorruptLog`, or `SessionError` with code `newer_format`.
    """
    a, b = story_of(without_owner(left)), story_of(without_owner(right))
    walk = _Walk()
    parting = next(walk.goals(a, b), None)
    turns = walk.turns if parting is None else parting.turn
    return Comparison(a.session_id, b.session_id, turns, parting, tuple(walk.notes_of(a, b)))


class _Walk:
    """Goes through both stories side by side."""

    __slots__ = ("_notes", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self._notes: dict[str, int] = {}

    def goals(self, left: Story, right: Story) -> Iterator[Parting]:
        for a, b in zip_longest(left.goals, right.goals):
            if a is None or b is None:
                yield self._longer(a, b, "with another goal")
                return
            yield from self._goal(a, b)

    def notes_of(self, left: Story, right: Story) -> Iterator[str]:
        yield from (f"{what}, from turn {turn} on" for what, turn in self._notes.items())
        a, b = _milliseconds(left), _milliseconds(right)
        if a != b:
            yield f"the time differs: {a / 1000:.3f} s and {b / 1000:.3f} s"

    def _note(self, what: str) -> None:
        self._notes.setdefault(what, self.turns + 1)

    def _part(
        self, kind: str, left: int | None, right: int | None, cause: str, fields: tuple[Difference, ...] = ()
    ) -> Parting:
        return Parting(kind, self.turns, left, right, cause, fields)

    def _goal(self, a: GoalStory, b: GoalStory) -> Iterator[Parting]:
        yield from self._config(a.started.config, b.started.config, a.seq, b.seq)
        if fields := differences(a.started.goal, b.started.goal):
            yield self._part("goal", a.seq, b.seq, "the goals differ", fields)
        if fields := differences(a.started.criteria, b.started.criteria):
            yield self._part("criteria", a.seq, b.seq, "the criteria of the goal differ", fields)
        if fields := differences(a.started.feedback, b.started.feedback):
            yield self._part("feedback", a.seq, b.seq, "the feedback on an earlier attempt differs", fields)
        if (a.started.format, a.started.renderer) != (b.started.format, b.started.renderer):
            self._note("the logs were written by different versions")
        for left, right in zip_longest(a.entries, b.entries):
            if left is None or right is None:
                yield from self._end(a, b)
                yield self._longer(left, right, "in this goal")
                return
            yield from self._entry(left, right)
        yield from self._end(a, b)

    def _config(self, left: Config, right: Config, a: int, b: int) -> Iterator[Parting]:
        if fields := differences(_by_name(left), _by_name(right)):
            names = ", ".join(dict.fromkeys(field.path for field in fields))
            yield self._part("config", a, b, f"the options differ: {names}", fields)

    def _end(self, a: GoalStory, b: GoalStory) -> Iterator[Parting]:
        if a.ended == b.ended:
            return
        words = [("not ended" if ended is None else ended.status) for ended in (a.ended, b.ended)]
        fields = differences(a.ended, b.ended) if a.ended and b.ended else ()
        if words[0] == words[1]:
            yield self._part("end", None, None, f"the goal ends {words[0]} for another reason", fields)
        elif a.entries and b.entries and len(a.entries) == len(b.entries):
            yield self._part("end", None, None, f"the goal ends otherwise: {words[0]} and {words[1]}", fields)

    def _longer(
        self, a: GoalStory | TurnStory | Remark | None, b: GoalStory | TurnStory | Remark | None, what: str
    ) -> Parting:
        longer, shorter = ("left", "right") if b is None else ("right", "left")
        left, right = (None if item is None else item.seq for item in (a, b))
        return self._part("length", left, right, f"the {shorter} session stops here, the {longer} one goes on {what}")

    def _entry(self, a: TurnStory | Remark, b: TurnStory | Remark) -> Iterator[Parting]:
        if isinstance(a, TurnStory) and isinstance(b, TurnStory):
            yield from self._turn(a, b)
        elif isinstance(a, Remark) and isinstance(b, Remark):
            yield from self._remark(a, b)
        else:
            words = [_word(entry) for entry in (a, b)]
            yield self._part("record", a.seq, b.seq, f"{words[0]} comes next, in the other session {words[1]}")

    def _remark(self, a: Remark, b: Remark) -> Iterator[Parting]:
        if type(a.event) is not type(b.event):
            yield self._part("record", a.seq, b.seq, f"{_word(a)} comes next, in the other session {_word(b)}")
        elif isinstance(a.event, Resumed) and isinstance(b.event, Resumed):
            yield from self._config(a.event.config, b.event.config, a.seq, b.seq)
        elif a.event is not None and b.event is not None and (fields := differences(_bare(a.event), _bare(b.event))):
            kind, _, cause = _REMARKS.get(type(a.event), ("record", "", "the records differ"))
            yield self._part(kind, a.seq, b.seq, cause, fields)

    def _turn(self, a: TurnStory, b: TurnStory) -> Iterator[Parting]:
        left, right = a.reply, b.reply
        if fields := differences(_said(left), _said(right)):
            same = "the same request" if left.digest == right.digest else "the same history"
            yield self._part("reply", a.seq, b.seq, f"{same}, another reply of the model", fields)
        if (left.dialect, left.model) != (right.dialect, right.model):
            fields = differences(
                {"model": left.model, "dialect": left.dialect}, {"model": right.model, "dialect": right.dialect}
            )
            yield self._part("model", a.seq, b.seq, "another model gave the same reply", fields)
        if fields := differences(left.output, right.output):
            yield self._part("reply", a.seq, b.seq, "the same text is judged otherwise as the output asked for", fields)
        if (left.usage, left.cost) != (right.usage, right.cost):
            self._note("tokens or cost differ")
        for one, other in zip(a.calls, b.calls, strict=True):
            yield from self._call(one, other)
        if _order(a.calls) != _order(b.calls):
            self._note("parallel calls came back in another order")
        self.turns += 1

    def _call(self, a: CallStory, b: CallStory) -> Iterator[Parting]:
        told = f"{a.name}({a.arguments})"
        if fields := differences(a.verdicts, b.verdicts):
            yield self._part("verdict", a.seq, b.seq, f"governance judges the same call otherwise: {told}", fields)
        for one, other in zip_longest(a.questions, b.questions):
            yield from self._question(one, other, told)
        if (a.result is None) != (b.result is None):
            shorter = "left" if a.result is None else "right"
            yield self._part(
                "length", a.settled, b.settled, f"the {shorter} session stops while this call is open: {told}"
            )
        elif fields := differences(a.result, b.result):
            yield self._part("result", a.settled, b.settled, f"the same call, another result: {told}", fields)

    def _question(self, a: Question | None, b: Question | None, told: str) -> Iterator[Parting]:
        left, right = (None if question is None else question.seq for question in (a, b))
        if a is None or b is None or a.payload != b.payload:
            fields = differences(None if a is None else a.payload, None if b is None else b.payload)
            yield self._part("suspension", left, right, f"the same call asks otherwise: {told}", fields)
        elif fields := differences(a.answer, b.answer):
            yield self._part("answer", left, right, f"the same question, another answer: {told}", fields)


_REMARKS: dict[object, tuple[str, str, str]] = {
    SignalledEvent: ("signal", "a signal", "another signal came"),
    Failed: ("failure", "a failed model call", "the model call failed otherwise"),
    PolicyChanged: ("policy", "another policy", "another policy came"),
    Resumed: ("resume", "a resume", "resumed by other options"),
}


def _word(entry: TurnStory | Remark) -> str:
    if isinstance(entry, TurnStory):
        return "a reply of the model"
    return _REMARKS.get(type(entry.event), ("", "another record", ""))[1]


def _bare(event: msgspec.Struct) -> msgspec.Struct:
    """Without what names other records or weighs texts."""
    if isinstance(event, Failed):
        return replace(event, effect=0)
    if isinstance(event, Compressed):
        sources = tuple(replace(source, tokens=0) for source in event.sources)
        return replace(event, tokens_before=0, tokens=0, sources=sources)
    return replace(event, tokens=0) if isinstance(event, SignalledEvent) else event


def _by_name(config: Config) -> dict[str, object]:
    """The options, the tools under their names, without what names sessions and records of this one."""
    options = msgspec.structs.asdict(config)
    tools = {tool.name: tool for tool in config.tools}
    return {**options, "session": "", "agents": _anybodys(config.agents), "tools": tools}


def _anybodys(agents: Agents) -> Agents:
    """The number behind a sub-agent's name is that of the record that asked for it."""
    if agents.parent is None:
        return agents
    path = tuple(name.rpartition("-")[0] for name in agents.parent.path)
    return replace(agents, parent=Parent("", path))


def _said(reply: Replied) -> dict[str, object]:
    parts = tuple(map(_without_id, reply.parts))
    return {"parts": parts, "finish": reply.finish, "complete": reply.complete}


def _without_id(part: RecordedPart) -> RecordedPart:
    return replace(part, id="", wire_id=None) if isinstance(part, RecordedCall) else part


def _order(calls: Sequence[CallStory]) -> list[int]:
    settled = [call for call in calls if call.settled is not None]
    return [call.index for call in sorted(settled, key=lambda call: call.settled or 0)]


def _milliseconds(story: Story) -> int:
    return story.goals[-1].until - story.goals[0].at if story.goals else 0
