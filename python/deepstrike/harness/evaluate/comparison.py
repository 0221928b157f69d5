"""Two evaluations of the same cases, side by side."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

from deepstrike.errors import ConfigError
from deepstrike.harness.evaluate.report import Evaluation
from deepstrike.harness.evaluate.statistics import Interval, chance, difference

if TYPE_CHECKING:
    from deepstrike.harness.evaluate.report import Tally

ALPHA: Final = 0.05
"""A difference that chance alone makes more often than this is no win."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What can be said of `right` against `left`, over the cases that both have measured in full.

    `difference` is right - left in pass rate with its interval (Newcombe's for pairs), `p` the chance of one as large
    between two agents that are alike (exact, two-sided; `statistics.chance`). `winner` is None unless p ≤ 0.05.
    `better` and `worse` count the cases in which right passed more or fewer trials than left, `left_out` those that
    only one of them has, or that one could not measure.
    """

    left: str
    right: str
    cases: int
    better: int
    worse: int
    left_out: int
    difference: Interval
    p: float

    @property
    def winner(self) -> Literal["left", "right"] | None:
        """Who is better, if that can be told from chance."""
        if self.p > ALPHA or self.difference.value == 0:
            return None
        return "right" if self.difference.value > 0 else "left"

    def to_json(self) -> str:
        """Everything as one line of JSON."""
        return json.dumps({**asdict(self), "winner": self.winner}, ensure_ascii=False)

    def __str__(self) -> str:
        gap = self.difference
        names = {"left": self.left or "the first", "right": self.right or "the second"}
        who = "no difference shown" if self.winner is None else f"{names[self.winner]} is better"
        lines = [
            f"{who}: {gap.value:+.1%} ({gap.low:+.1%} to {gap.high:+.1%}) from {names['left']} to {names['right']}, "
            f"p = {self.p:.3g}",
            f"{self.cases} cases: {self.better} better, {self.worse} worse, "
            f"{self.cases - self.better - self.worse} the same",
        ]
        if self.winner is None:
            lines.append("chance alone makes such a difference often enough; more cases could tell")
        if self.left_out:
            lines.append(f"{self.left_out} cases are left out: only one of the two has measured them in full")
        return "\n".join(lines)


def compare(left: Evaluation, right: Evaluation) -> Comparison:
    """Compare two evaluations of the same cases, case by case.

    Raises `ConfigError` where they share no case that both have measured in full with the same number of trials.
    """
    for each in (left, right):
        if not isinstance(each, Evaluation):
            raise ConfigError(f"compare takes two evaluations, as evaluate gives them, not {type(each).__name__}")
    if left.repeats != right.repeats:
        raise ConfigError(
            f"the one has {left.repeats} trials a case, the other {right.repeats}: evaluate both with the same repeats"
        )
    a, b = _measured(left), _measured(right)
    both = [key for key in a if key in b]
    if not both:
        raise ConfigError("the two evaluations share no case that both have measured in full")
    changes = [b[key].passed - a[key].passed for key in both]
    return Comparison(
        left=left.name,
        right=right.name,
        cases=len(both),
        better=sum(change > 0 for change in changes),
        worse=sum(change < 0 for change in changes),
        left_out=len({(case.case, case.digest) for case in (*left.cases, *right.cases)}) - len(both),
        difference=difference([a[key].share for key in both], [b[key].share for key in both]),
        p=chance(changes),
    )


def _measured(evaluation: Evaluation) -> dict[tuple[str, str], Tally]:
    return {(case.case, case.digest): case for case in evaluation.cases if case.trials == evaluation.repeats}
