"""What a harness came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from deepstrike.harness.verdict import Verdict
    from deepstrike.stream import PendingRequest, Status


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """One attempt and the verdict of it. `number` counts from 1; `error` says why its run did not complete.

    `iterations` and `total_tokens` are those of the attempt's run, `judge_tokens` those of its verdict.
    """

    number: int
    session_id: str
    result: str
    output: object | None
    status: Status
    iterations: int
    total_tokens: int
    judge_tokens: int
    verdict: Verdict
    error: str | None = None

    @property
    def rank(self) -> tuple[bool, bool, float, int]:
        """What makes one attempt better than another: passed, not failed, the score, being the later one."""
        return (self.verdict.passed, self.status != "error", self.verdict.score or 0.0, self.number)


@dataclass(frozen=True, slots=True)
class HarnessOutcome:
    """The best attempt, and what all of them took.

    `result` is the text of the best attempt: one that passed, else the one with the highest score, the last among
    equals. `iterations` counts the model calls of all attempts, `total_tokens` adds those of the judge's. `status` is
    that of the best attempt, or what ended the loop before its time: `suspended`, `user_abort`, `token_budget`,
    `timeout`. `overall_score` (0 to 1) and `feedback` are the best attempt's verdict. `attempts` counts them,
    `history` holds them. `cost_usd` is None where a price is not known. A gate gets the outcome of the attempt that it
    is asked about alone, not passed yet.
    """

    result: str
    passed: bool = False
    iterations: int = 0
    total_tokens: int = 0
    status: Status = "completed"
    overall_score: float | None = None
    feedback: str = ""
    attempts: int = 1
    output: object | None = None
    verdict: Verdict | None = None
    history: tuple[AttemptResult, ...] = ()
    session_id: str = ""
    pending: tuple[PendingRequest, ...] = ()
    cost_usd: float | None = None
    skill: Path | None = None
