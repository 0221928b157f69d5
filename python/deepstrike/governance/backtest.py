"""What another policy would have said of recorded calls.

Every call that was judged in the given sessions is judged again by the kernel's own stages, in the order of their times
over all sessions, so that rate limits see what they would have seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from deepstrike.governance.unused import dead, overruled
from deepstrike.governance.verdict import GovernanceVerdict, Kind, read_verdict
from deepstrike.kernel import Judge, Kernel, decode_record
from deepstrike.wire.event import Allow, Answered, Ask, Judged, Refuse, Replied
from deepstrike.wire.input import Approve
from deepstrike.wire.message import Ok, RecordedCall
from deepstrike.wire.policy import Skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepstrike.governance.policy import Governance
    from deepstrike.wire.event import CallRef, Verdict
    from deepstrike.wire.message import Validated

ChangeKind: TypeAlias = Literal["newly_blocked", "newly_allowed", "newly_asked"]
_BLOCKED = ("deny", "rate_limited")
_TOLD = (b'"type":"judged"', b'"type":"replied"', b'"type":"answered"')
_SKILLS = b'"sources":{"skills":['
_NO_SKILL = Skill("")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A judgement of a call: `seq` is its record, `at` its time in milliseconds, `arguments` what was judged.

    A call that a person approved is judged twice, the second time `approved` and by the arguments that they gave.
    `call` is the seq of its reply and its place among the calls there. `skill` was active then and let `allowed_tools`
    pass; a skill goes on narrowing under another policy.
    """

    session_id: str
    seq: int
    at: int
    tool: str
    arguments: str
    was: Kind
    approved: bool = False
    call: tuple[int, int] = (0, 0)
    skill: str = ""
    allowed_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Calls that one rule decides in another way: how many there are, and the one with the shortest arguments."""

    kind: ChangeKind
    verdict: GovernanceVerdict
    count: int
    example: JudgedCall


@dataclass(frozen=True, slots=True)
class Backtest:
    """What a policy changes for recorded calls.

    `dead` are its rules that fit none of them, `overruled` those that fit some and never decide: a stronger rule fits
    all of the same tools.
    """

    calls: int
    sessions: int
    changes: tuple[Change, ...]
    dead: tuple[str, ...]
    overruled: tuple[str, ...] = ()


def backtest(governance: Governance, sessions: Mapping[str, Iterable[bytes]]) -> Backtest:
    """Judge the calls of recorded sessions (id → records) by a policy. The policy's own rate windows are not touched.

    A question that was answered, or that nobody had asked then, counts as approved for the limits behind it. Raises
    what reading a record raises.
    """
    policy = governance.policy()
    judge = Judge(_encode(policy))
    judged = [call for name, records in sessions.items() for call in judged_calls(name, records)]
    changed: set[tuple[str, tuple[int, int]]] = set()
    found: dict[tuple[ChangeKind, str, str], list[tuple[JudgedCall, GovernanceVerdict]]] = {}
    for call in sorted(judged, key=attrgetter("at", "session_id", "seq")):
        name = (call.session_id, call.call)
        if name in changed:
            continue
        now = _again(judge, call)
        kind = _change(call.was, now.kind)
        if kind is not None:
            changed.add(name)
            found.setdefault((kind, now.stage, now.rule), []).append((call, now))
    calls = {(call.session_id, call.call) for call in judged}
    tools = {call.tool for call in judged}
    changes = tuple(map(_summed, found.items()))
    return Backtest(len(calls), len(sessions), changes, tuple(dead(policy, tools)), tuple(overruled(policy, tools)))


def _again(judge: Judge, call: JudgedCall) -> GovernanceVerdict:
    """The verdict of today; a call that ran then and would be asked about now counts as one that was approved."""
    skill = _encode(Skill(call.skill, call.allowed_tools))
    ask = partial(judge.evaluate, call.tool, call.arguments, call.at, consume=True, skill=skill)
    now = read_verdict(ask(approved=call.approved))
    if now.kind == "ask" and call.was == "allow":
        ask(approved=True)
    return now


def judged_calls(session_id: str, records: Iterable[bytes]) -> list[JudgedCall]:
    """The calls of a session that governance has judged: each once, and once more where a person approved it.

    Of judgements that were repeated because the policy had changed, or after a crash, the last one counts. Raises what
    reading a record raises; `Corrupt` or `Newer` for a log with skills that does not fold.
    """
    records = list(records)
    active = _Active(records)
    named: dict[tuple[int, int], RecordedCall] = {}
    approved: dict[tuple[int, int], str] = {}
    judged: dict[tuple[tuple[int, int], bool], JudgedCall] = {}
    for line in records:
        if not any(tag in line for tag in _TOLD):
            continue
        record = decode_record(line)
        event = record.event
        if isinstance(event, Replied):
            calls = (part for part in event.parts if isinstance(part, RecordedCall))
            named.update(((record.seq, index), call) for index, call in enumerate(calls))
        elif isinstance(event, Answered) and isinstance(event.answer, Approve) and _name(event.call) in named:
            approved[_name(event.call)] = _arguments(named[_name(event.call)], event.answer.arguments)
        elif isinstance(event, Judged) and _by_policy(event.verdict) and (name := _name(event.call)) in named:
            call, skill = named[name], active.before(record.seq)
            is_approved = name in approved
            judged[name, is_approved] = JudgedCall(
                session_id,
                record.seq,
                record.at,
                call.name,
                approved[name] if is_approved else _arguments(call),
                _was(event.verdict),
                is_approved,
                name,
                skill.name,
                skill.allowed_tools,
            )
    return list(judged.values())


class _Active:
    """The skills of a log; most have none, and are not folded."""

    def __init__(self, records: Sequence[bytes]) -> None:
        has_skills = any(_SKILLS in line for line in records)
        self._changes = Kernel.active_skills(records) if has_skills else []

    def before(self, seq: int) -> Skill:
        """The skill that was active before a record; one without name and tools where there was none."""
        found = next((skill for at, skill in reversed(self._changes) if at < seq), None)
        return found or _NO_SKILL


def _name(call: CallRef) -> tuple[int, int]:
    return call.reply, call.index


def _arguments(call: RecordedCall, given: Validated | None = None) -> str:
    """What was judged: the model's arguments, or those that came with the approval."""
    own, valid = call.args_text, call.validated
    text = valid.text if isinstance(valid, Ok) and valid.text is not None else own
    if isinstance(given, Ok) and given.text is not None:
        text = given.text
    return text if text.strip() not in ("", "null") else "{}"


def _by_policy(verdict: Verdict) -> bool:
    """Whether a policy has said it: no stage is asked about a call that is not valid."""
    return not (isinstance(verdict, Refuse) and verdict.unfit)


def _was(verdict: Verdict) -> Kind:
    if isinstance(verdict, Allow):
        return "allow"
    if isinstance(verdict, Ask):
        return "ask"
    return "deny" if verdict.retry_after_ms is None else "rate_limited"


def _change(was: Kind, now: Kind) -> ChangeKind | None:
    if now in _BLOCKED:
        return None if was in _BLOCKED else "newly_blocked"
    if was in _BLOCKED:
        return "newly_allowed" if now == "allow" else "newly_asked"
    if was == now:
        return None
    return "newly_asked" if now == "ask" else "newly_allowed"


def _summed(
    entry: tuple[tuple[ChangeKind, str, str], list[tuple[JudgedCall, GovernanceVerdict]]],
) -> Change:
    (kind, _, _), calls = entry
    example, verdict = min(calls, key=lambda pair: len(pair[0].arguments))
    return Change(kind, verdict, len(calls), example)
