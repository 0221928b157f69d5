"""What is said of an attempt, and what that comes to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.harness.request import Criterion

Problem = Literal["run_failed", "unreadable", "judge_failed", "not_judged"]
"""Why there is no verdict of the answer: the attempt itself failed, what the judge said means nothing, the judge could
not be asked or failed, the loop ended first."""

MOST_FEEDBACK: Final = 8_000
"""Characters of feedback that the next attempt reads; the rest is cut."""


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """What is said of one criterion, by its text."""

    criterion: str
    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is good enough, and why.

    `score` is from 0 to 1, None where none was given. `criteria` says it of single criteria. `problem` is None for a
    verdict that somebody gave, else a word for why nobody did: it has not passed then, and `feedback` says what
    happened. Raises `ConfigError` for values of other kinds.
    """

    passed: bool
    feedback: str = ""
    score: float | None = None
    criteria: tuple[CriterionVerdict, ...] = ()
    problem: Problem | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.passed, bool):
            raise ConfigError(f"passed of a Verdict must be True or False, not {self.passed!r}")
        if not isinstance(self.feedback, str):
            raise ConfigError(f"feedback of a Verdict must be a text, not {type(self.feedback).__name__}")
        if self.score is not None and not _is_share(self.score):
            raise ConfigError(f"score of a Verdict must be a number from 0 to 1, not {self.score!r}")


def _is_share(score: object) -> bool:
    return isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score) and 0 <= score <= 1


def weighed(verdict: Verdict, criteria: Sequence[Criterion]) -> Verdict:
    """The verdict with what follows from its single criteria, whatever it says as a whole.

    A required criterion that was not met overrules "passed"; where criteria were judged one by one, so does a required
    one of which nothing was said. The score is then the part of the weight that was met.
    """
    if not verdict.criteria or not criteria:
        return verdict
    said = {each.criterion: each for each in verdict.criteria}
    short = [each for each in criteria if each.required and not (each.text in said and said[each.text].passed)]
    total = sum(each.weight for each in criteria)
    met = sum(each.weight for each in criteria if each.text in said and said[each.text].passed)
    silent = [each.text for each in short if each.text not in said]
    told = [verdict.feedback] if verdict.feedback else []
    told += [f"Nothing was said of the required criterion: {text}" for text in silent]
    return replace(
        verdict,
        passed=verdict.passed and not short,
        feedback="\n".join(told),
        score=met / total if total else verdict.score,
    )


def feedback_turn(verdict: Verdict) -> str | None:
    """What the next attempt reads of this verdict; None where it says nothing of the answer."""
    if verdict.problem is not None:
        return None
    lines = ["An earlier attempt at this goal was not good enough."]
    if verdict.feedback:
        lines += ["What was said of it:", verdict.feedback]
    missed = [each for each in verdict.criteria if not each.passed]
    if missed:
        lines.append("Not met:")
    lines += [f"- {each.criterion}{f': {each.reason}' if each.reason else ''}" for each in missed]
    text = "\n".join(lines)
    return text if len(text) <= MOST_FEEDBACK else f"{text[:MOST_FEEDBACK]} … (cut)"
