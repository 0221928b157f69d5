"""What a harness yields beside the events of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from deepstrike.stream import DoneEvent, StreamEvent

if TYPE_CHECKING:
    from deepstrike.harness.outcome import HarnessOutcome
    from deepstrike.harness.verdict import Verdict
    from deepstrike.stream import PendingRequest, Status, UsageEvent


@dataclass(frozen=True, slots=True)
class AttemptDoneEvent:
    """The run of an attempt has ended: its `DoneEvent`, and which attempt it was, from 1 on."""

    iterations: int
    total_tokens: int
    status: Status
    usage: UsageEvent | None
    session_id: str | None
    output: object | None
    pending: tuple[PendingRequest, ...] | None
    attempt: int
    type: ClassVar[Literal["attempt_done"]] = "attempt_done"


@dataclass(frozen=True, slots=True)
class VerdictEvent:
    """An attempt was judged."""

    attempt: int
    verdict: Verdict
    type: ClassVar[Literal["verdict"]] = "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessDoneEvent(DoneEvent):
    """The last event, a `DoneEvent` over all attempts, with the best one's verdict and the whole outcome."""

    verdict: Verdict
    outcome: HarnessOutcome


HarnessEvent: TypeAlias = StreamEvent | AttemptDoneEvent | VerdictEvent | HarnessDoneEvent
