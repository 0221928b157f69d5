"""A session as lines for people: `sessions list` and `sessions show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.cli.lines import pending_lines
from deepstrike.cli.safe import one_line, visible
from deepstrike.replay.story import TurnStory
from deepstrike.secrets.shapes import masked
from deepstrike.wire.event import Ask, Failed, Refuse, Resumed, SignalledEvent
from deepstrike.wire.input import Approve, Deny, Value
from deepstrike.wire.message import File, Image, Text, Thinking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.replay.story import CallStory, GoalStory, Remark, Story
    from deepstrike.stream import PendingRequest
    from deepstrike.wire.input import AnswerBody
    from deepstrike.wire.message import Part

_STEPS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def session_lines(story: Story, pending: tuple[PendingRequest, ...], now_ms: int, options: str) -> Iterator[str]:
    """The whole session, goal by goal; secrets masked, control characters shown as escapes.

    `options` are those to answer with where it waits.
    """
    turns = sum(len(goal.turns) for goal in story.goals)
    yield f"session {one_line(story.session_id)} · {_count(len(story.goals), 'goal')} · {_count(turns, 'turn')}"
    number = 0
    for goal in story.goals:
        yield ""
        stands = "suspended" if pending and goal is story.goals[-1] else "not ended"
        yield from _goal(goal, number, now_ms)
        yield _end(goal, stands)
        number += len(goal.turns)
    if pending:
        yield ""
        yield from pending_lines(pending, story.session_id, options)


def ago(then_ms: int, now_ms: int) -> str:
    """`3 min ago`"""
    for size, word in _STEPS:
        if now_ms - then_ms >= size:
            return f"{(now_ms - then_ms) // size} {word} ago"
    return "just now"


def goal_text(goal: GoalStory) -> str:
    """The text of a goal; other parts named in brackets."""
    return _text(goal.started.goal)


def _goal(goal: GoalStory, number: int, now_ms: int) -> Iterator[str]:
    yield from _block("goal    ", goal_text(goal))
    yield from (f"          must: {one_line(criterion)}" for criterion in goal.started.criteria)
    yield from (f"          feedback: {one_line(said.text)}" for said in goal.started.feedback)
    config = goal.started.config
    model = one_line(config.model.id) or "a model without a name"
    yield f"          {ago(goal.at, now_ms)} · {model} · {_count(len(config.tools), 'tool')}"
    for entry in goal.entries:
        if isinstance(entry, TurnStory):
            number += 1
            yield from _turn(entry, number)
        else:
            yield f"        · {_remark(entry)}"


def _turn(turn: TurnStory, number: int) -> Iterator[str]:
    usage = turn.reply.usage
    yield f"turn {number:<3} {usage.input} tokens in, {usage.output} out{'' if turn.reply.complete else ', cut'}"
    for part in turn.reply.parts:
        if isinstance(part, Text):
            yield from _block("        ", part.text)
        elif isinstance(part, Thinking):
            yield from _block("        ", f"({one_line(part.text)})")
    for notice in turn.reply.notices:
        yield f"        · {one_line(notice.message)} [{one_line(notice.code)}]"
    for call in turn.calls:
        yield from _call(call)


def _call(call: CallStory) -> Iterator[str]:
    yield f"        → {one_line(call.name, 80)}({one_line(call.arguments)})"
    for verdict in call.verdicts:
        if isinstance(verdict, Ask) or (isinstance(verdict, Refuse) and not verdict.unfit):
            word = "denied" if isinstance(verdict, Refuse) else "asks"
            yield f"          {word} by {one_line(verdict.stage)}: {one_line(verdict.reason)}"
    for question in call.questions:
        answer = "no answer yet" if question.answer is None else _answer(question.answer)
        yield f"          ? {one_line(question.payload)} · {answer}"
    if call.result is None:
        yield f"          … {'begun, no result' if call.begun else 'not begun'}"
    elif call.result.error_kind:
        yield f"        ✗ {one_line(call.result.error_kind)}: {one_line(_text(call.result.parts))}"
    else:
        yield f"        ← {one_line(_text(call.result.parts)) or '(nothing)'}"


def _answer(answer: AnswerBody) -> str:
    match answer:
        case Value():
            return f"answered {one_line(answer.json)}"
        case Approve():
            return "approved"
        case Deny():
            return f"denied: {one_line(answer.reason)}"


def _remark(remark: Remark) -> str:
    match remark.event:
        case Resumed():
            return "resumed"
        case SignalledEvent(signal=signal):
            return f"signal {one_line(signal.kind)} ({signal.urgency}): {one_line(signal.payload)}"
        case Failed(fault=fault):
            return f"the model call failed: {one_line(fault.message)} [{one_line(fault.code)}]"
        case None:
            return f"record {remark.seq} is of a kind that this version does not know"
        case event:
            return str(event.__struct_config__.tag).replace("_", " ")


def _end(goal: GoalStory, stands: str) -> str:
    """How a goal ended, or how it stands if it has not."""
    turns = goal.turns
    spent = sum(turn.reply.usage.input + turn.reply.usage.output for turn in turns)
    status = stands if goal.ended is None else goal.ended.status
    line = f"{status} · {_count(len(turns), 'turn')} · {spent} tokens · {(goal.until - goal.at) / 1000:.2f} s"
    fault = None if goal.ended is None else goal.ended.fault
    return line if fault is None else f"{line} · {one_line(fault.message)} [{one_line(fault.code)}]"


def _block(head: str, text: str) -> Iterator[str]:
    """Text over as many lines as it has, the first behind `head`."""
    for index, line in enumerate(visible(masked(text)).splitlines() or [""]):
        yield f"{head if index == 0 else '        '}{'  ' if head.strip() else ''}{line}".rstrip()


def _text(parts: tuple[Part, ...]) -> str:
    return "\n".join(_part(part) for part in parts)


def _part(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case Image():
            return f"[image {part.media_type or part.url}]"
        case File():
            return f"[file {part.name or part.media_type}]"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
