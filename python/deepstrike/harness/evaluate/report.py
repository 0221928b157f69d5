"""What an evaluation measured."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from deepstrike.harness.evaluate.statistics import Interval, passes_all, rate
from deepstrike.skills.metadata import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.stream import Status

_WIDE = 40


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one case, `number` counting from 1.

    `passed` is None where nothing was measured: the run or the judge failed, or waits for answers; `error` says how.
    `latency_ms` is the active time of the run, without the judge. `tokens` and `cost_usd` are with the judge; the cost
    is None where a price is not known.
    """

    case: str
    digest: str
    number: int
    session_id: str
    passed: bool | None
    status: Status
    result: str = ""
    feedback: str = ""
    score: float | None = None
    iterations: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    latency_ms: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """The trials of one case that measured something, and those that did not."""

    case: str
    digest: str
    passed: int
    trials: int
    errors: int

    @property
    def share(self) -> float:
        """The part of the measured trials that passed; only where there are some."""
        return self.passed / self.trials


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All trials of a data set with one agent.

    `session_id` names it in the log: evaluated again under it, only what is missing or failed is run. `complete` is
    False where it was interrupted.
    """

    name: str
    session_id: str
    repeats: int
    trials: tuple[Trial, ...]
    complete: bool = True

    @property
    def cases(self) -> tuple[Tally, ...]:
        """The trials by case, in the order of the cases."""
        found: dict[str, list[Trial]] = {}
        for trial in self.trials:
            found.setdefault(trial.case, []).append(trial)
        return tuple(_tally(case, trials) for case, trials in found.items())

    @property
    def pass_rate(self) -> Interval | None:
        """The mean over the cases of the part of their trials that passed; None where nothing was measured."""
        return rate([case.share for case in self.cases if case.trials])

    def pass_all(self, k: int) -> float | None:
        """pass^k: how likely k trials of a case all pass, over the cases with as many measured trials; None without."""
        shares = [passes_all(case.passed, case.trials, k) for case in self.cases if case.trials >= k]
        return math.fsum(shares) / len(shares) if shares else None

    @property
    def errors(self) -> tuple[Trial, ...]:
        """The trials that measured nothing. They count neither as passed nor as failed."""
        return tuple(trial for trial in self.trials if trial.passed is None)

    @property
    def tokens(self) -> int:
        """Of all trials, with the judge's."""
        return sum(trial.tokens for trial in self.trials)

    @property
    def cost_usd(self) -> float | None:
        """Of all trials; None where the price of one is not known."""
        costs = [trial.cost_usd for trial in self.trials]
        known = [cost for cost in costs if cost is not None]
        return math.fsum(known) if len(known) == len(costs) else None

    def latency_ms(self, share: float) -> int | None:
        """The time within which this share of the measured trials ended (nearest rank); None without one."""
        times = sorted(trial.latency_ms for trial in self.trials if trial.passed is not None)
        return times[max(0, math.ceil(share * len(times)) - 1)] if times else None

    def to_json(self) -> str:
        """Everything as one line of JSON: the summary, and each trial."""
        interval = self.pass_rate
        summary = {
            "name": self.name,
            "session_id": self.session_id,
            "complete": self.complete,
            "cases": len(self.cases),
            "repeats": self.repeats,
            "pass_rate": None if interval is None else asdict(interval),
            "pass_all": {str(k): self.pass_all(k) for k in range(1, self.repeats + 1)},
            "errors": len(self.errors),
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "latency_ms": {"p50": self.latency_ms(0.5), "p95": self.latency_ms(0.95)},
            "trials": [asdict(trial) for trial in self.trials],
        }
        return json.dumps(summary, ensure_ascii=False)

    def table(self) -> str:
        """A line for each case and the summary, for people; control characters are left out."""
        rows: list[tuple[str, ...]] = [("case", "passed", "errors", "tokens", "time", "why not")]
        for tally in self.cases:
            trials = [trial for trial in self.trials if trial.case == tally.case]
            rows.append(_row(tally, trials))
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
        lines = ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in rows]
        return "\n".join([*lines, "", *self._summary()])

    def _summary(self) -> list[str]:
        interval = self.pass_rate
        name = f"{one_line(self.name)}: " if self.name else ""
        many = _many(len(self.cases), "case")
        lines = [f"{name}{'nothing was measured' if interval is None else f'{shown_share(interval)} of {many} passed'}"]
        again = ((k, self.pass_all(k)) for k in range(2, self.repeats + 1))
        lines += [f"{share:.1%} pass {k} times of {k}" for k, share in again if share is not None]
        price = "" if self.cost_usd is None else f", ${self.cost_usd:.4f}"
        half, most = _seconds(self.latency_ms(0.5)), _seconds(self.latency_ms(0.95))
        lines.append(f"{self.tokens} tokens{price}, half within {half}, 95 % within {most}")
        if self.errors:
            lines.append(f"not counted, since they ended in an error: {_many(len(self.errors), 'trial')}")
        if not self.complete:
            lines.append(f"interrupted: evaluate again as {self.session_id!r} to go on")
        return lines


def shown_share(interval: Interval) -> str:
    """`75.0% (47.0% to 91.0%)`"""
    return f"{interval.value:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def _tally(case: str, trials: Sequence[Trial]) -> Tally:
    measured = [trial for trial in trials if trial.passed is not None]
    passed = sum(trial.passed is True for trial in measured)
    return Tally(case, trials[0].digest, passed, len(measured), len(trials) - len(measured))


def _row(tally: Tally, trials: Sequence[Trial]) -> tuple[str, ...]:
    why = next((trial.error or trial.feedback for trial in trials if not trial.passed), "")
    slowest = max(trial.latency_ms for trial in trials)
    return (
        _short(tally.case),
        f"{tally.passed}/{tally.trials}",
        str(tally.errors),
        str(sum(trial.tokens for trial in trials)),
        _seconds(slowest),
        _short(why, 2 * _WIDE),
    )


def _short(text: str, width: int = _WIDE) -> str:
    flat = one_line(text[: 8 * width])
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _seconds(time_ms: int | None) -> str:
    return "-" if time_ms is None else f"{time_ms / 1000:.2f} s"
