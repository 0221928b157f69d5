"""What governance says of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from deepstrike.wire.event import Allow, Ask, Trail, Verdict

Kind: TypeAlias = Literal["allow", "deny", "ask", "rate_limited"]


@dataclass(frozen=True, slots=True)
class GovernanceVerdict:
    """The verdict on a call, and why.

    `kind` is `allow`, `deny`, `ask` (a person has to say) or `rate_limited`. `stage` is the stage that decided
    (permission, veto, rate_limit, constraint, audit) and `rule` its rule, `error` for a stage that failed and so
    denied; both are empty for `allow`. `retry_after_ms` is there under `rate_limited`. `trail` names each stage that
    was asked and what it said.
    """

    kind: Kind
    stage: str = ""
    rule: str = ""
    reason: str = ""
    retry_after_ms: int | None = None
    trail: tuple[tuple[str, str], ...] = ()

    @property
    def allowed(self) -> bool:
        """The call may run at once."""
        return self.kind == "allow"


class _Judgement(msgspec.Struct):
    verdict: Verdict
    trail: tuple[Trail, ...]


_decode = msgspec.json.Decoder(_Judgement).decode


def read_verdict(judgement: bytes) -> GovernanceVerdict:
    """The kernel's judgement, as JSON, in words of the public interface."""
    found = _decode(judgement)
    trail = tuple((entry.stage, entry.verdict) for entry in found.trail)
    said = found.verdict
    if isinstance(said, Allow):
        return GovernanceVerdict("allow", trail=trail)
    if isinstance(said, Ask):
        return GovernanceVerdict("ask", said.stage, said.rule, said.reason, trail=trail)
    kind: Kind = "deny" if said.retry_after_ms is None else "rate_limited"
    return GovernanceVerdict(kind, said.stage, said.rule, said.reason, said.retry_after_ms, trail)
