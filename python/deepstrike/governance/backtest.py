"""What another policy would have said of recorded calls.

Every call that was judged in the given sessions is judged again by the kernel's own stages, in the order of their times
over all sessions, so that rate limits see what they would have seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from deepstrike.governance.verdict import GovernanceVerdict, Kind, read_verdict
from deepstrike.kernel import Judge, Kernel, decode_record, glob
from deepstrike.wire.event import Allow, Ask, Judged, Replied
from deepstrike.wire.message import Ok, RecordedCall
from deepstrike.wire.policy import Skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepstrike.governance.policy import Governance
    from deepstrike.wire.event import CallRef, Verdict
    from deepstrike.wire.policy import Policy

ChangeKind: TypeAlias = Literal["newly_blocked", "newly_allowed", "newly_asked"]
_BLOCKED = ("deny", "rate_limited")
_TOLD = (b'"type":"judged"', b'"type":"replied"')
_SKILLS = b'"sources":{"skills":['
_NO_SKILL = Skill("")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call as it was judged then: `seq` is the record of its first judgement, `at` its time in milliseconds.

    `skill` was active then and let `allowed_tools` pass; a skill goes on narrowing under another policy.
    """

    session_id: str
    seq: int
    at: int
    tool: str
    arguments: str
    was: Kind
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
    """What a policy changes for recorded calls; `dead` are its rules that fit none of them."""

    calls: int
    sessions: int
    changes: tuple[Change, ...]
    dead: tuple[str, ...]


def backtest(governance: Governance, sessions: Mapping[str, Iterable[bytes]]) -> Backtest:
    """Judge the calls of recorded sessions (id → records) by a policy. The policy's own rate windows are not touched.

    Raises what reading a record raises.
    """
    policy = governance.policy()
    judge = Judge(_encode(policy))
    calls = [call for name, records in sessions.items() for call in judged_calls(name, records)]
    found: dict[tuple[ChangeKind, str, str], list[tuple[JudgedCall, GovernanceVerdict]]] = {}
    for call in sorted(calls, key=attrgetter("at", "session_id", "seq")):
        skill = _encode(Skill(call.skill, call.allowed_tools))
        now = read_verdict(judge.evaluate(call.tool, call.arguments, call.at, consume=True, skill=skill))
        kind = _change(call.was, now.kind)
        if kind is not None:
            found.setdefault((kind, now.stage, now.rule), []).append((call, now))
    return Backtest(len(calls), len(sessions), tuple(map(_summed, found.items())), _dead(policy, calls))


def judged_calls(session_id: str, records: Iterable[bytes]) -> list[JudgedCall]:
    """The calls of a session that governance has judged, each once, by the arguments of its first judgement.

    Raises what reading a record raises; `Corrupt` or `Newer` for a log with skills that does not fold.
    """
    records = list(records)
    active = _Active(records)
    named: dict[tuple[int, int], RecordedCall] = {}
    judged: dict[tuple[int, int], JudgedCall] = {}
    for line in records:
        if not any(tag in line for tag in _TOLD):
            continue
        record = decode_record(line)
        event = record.event
        if isinstance(event, Replied):
            calls = (part for part in event.parts if isinstance(part, RecordedCall))
            named.update(((record.seq, index), call) for index, call in enumerate(calls))
        elif isinstance(event, Judged) and (name := _name(event.call)) in named and name not in judged:
            call, skill = named[name], active.before(record.seq)
            judged[name] = JudgedCall(
                session_id,
                record.seq,
                record.at,
                call.name,
                _arguments(call),
                _was(event.verdict),
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


def _arguments(call: RecordedCall) -> str:
    valid = call.validated
    text = valid.text if isinstance(valid, Ok) and valid.text is not None else call.args_text
    return text if text.strip() not in ("", "null") else "{}"


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


def _dead(policy: Policy, calls: Iterable[JudgedCall]) -> tuple[str, ...]:
    tools = {call.tool for call in calls}
    rules = [
        *((rule.pattern, f"{rule.action} {rule.pattern}") for rule in policy.rules),
        *((pattern, f"block {pattern}") for pattern in policy.blocked),
        *((rate.pattern, f"rate limit {rate.pattern}") for rate in policy.rates),
        *((constraint.pattern, f"constraint {constraint.pattern}") for constraint in policy.constraints),
    ]
    return tuple(said for pattern, said in rules if not any(glob(pattern, tool) for tool in tools))
