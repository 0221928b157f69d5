"""The statistics of pass rates: how sure a rate is, and whether two of them differ.

Everything here is exact or closed: no random numbers, so the same trials give the same report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

Z: Final = 1.959963984540054
"""The normal quantile of a two-sided interval of 95 %."""


_MOST_WORK: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float


def rate(shares: Sequence[float]) -> Interval | None:
    """The mean of the cases' own rates (each from 0 to 1) with its interval by Wilson; None without a case.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927) 209-212. With
    one trial a case that is the interval of a proportion. With more of them it is not narrowed, since trials of one
    case are not independent: no distribution on [0, 1] with this mean varies more than the proportion does, so the
    interval is then rather too wide than too narrow.
    """
    if not shares:
        return None
    n = len(shares)
    p = math.fsum(shares) / n
    base, middle = 1 + Z * Z / n, p + Z * Z / (2 * n)
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return Interval(p, max(0.0, (middle - half) / base), min(1.0, (middle + half) / base))


def passes_all(passed: int, trials: int, k: int) -> float:
    """pass^k: the chance that k trials of a case, drawn of those that were made, all passed.

    C(passed, k) / C(trials, k), the unbiased estimate of S. Yao et al., τ-bench, arXiv:2406.12045 (2024).
    """
    return math.comb(passed, k) / math.comb(trials, k)


def difference(left: Sequence[float], right: Sequence[float]) -> Interval:
    """The mean of right - left over pairs, each from 0 to 1, with its interval by Newcombe. At least one pair.

    R. G. Newcombe, Improved confidence intervals for the difference between binomial proportions based on paired data,
    Statistics in Medicine 17 (1998) 2635-2650, method 10: the Wilson intervals of both, joined by their correlation,
    which is corrected for continuity, so that a few pairs that agree are not taken for certainty.
    """
    a, b = rate(left), rate(right)
    if a is None or b is None:
        raise ValueError("a difference needs a pair")
    phi = _correlation(left, right)
    below = _joined(b.value - b.low, a.high - a.value, phi)
    above = _joined(b.high - b.value, a.value - a.low, phi)
    delta = b.value - a.value
    return Interval(delta, max(-1.0, delta - below), min(1.0, delta + above))


def _joined(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


def _correlation(left: Sequence[float], right: Sequence[float]) -> float:
    n = len(left)
    a, b = math.fsum(left) / n, math.fsum(right) / n
    both = math.fsum((x - a) * (y - b) for x, y in zip(left, right, strict=True))
    spread = math.sqrt(math.fsum((x - a) ** 2 for x in left) * math.fsum((y - b) ** 2 for y in right))
    corrected = max(both - 0.5, 0.0) if both > 0 else both
    return corrected / spread if spread else 0.0


def chance(differences: Sequence[int]) -> float:
    """How likely a sum as far from 0 is if each pair's difference could as well have had the other sign (two-sided).

    The exact sign-flip test (R. A. Fisher, The Design of Experiments, 1935, §21). Where every difference is -1, 0 or 1
    it is McNemar's test in its exact form (Q. McNemar, Psychometrika 12 (1947) 153-157): the binomial of the pairs
    that differ. 1.0 where none does. Beyond what can be counted in a few seconds (some thousand pairs of unequal
    differences) it is the normal approximation, which is as good as exact there.
    """
    steps = [abs(each) for each in differences if each]
    seen = abs(sum(differences))
    if len(set(steps)) <= 1:
        return _binomial(len(steps), seen // steps[0] if steps else 0)
    if len(steps) * sum(steps) > _MOST_WORK:
        return math.erfc(seen / math.sqrt(2 * sum(step * step for step in steps)))
    return _counted(steps, seen)


def _binomial(pairs: int, seen: int) -> float:
    """The chance that of so many fair coins heads and tails are at least `seen` apart."""
    few = (pairs - seen) // 2
    ways = 1
    total = 0
    for heads in range(few + 1):
        total += ways
        ways = ways * (pairs - heads) // (heads + 1)
    return 1.0 if seen == 0 else min(1.0, _ratio(2 * total, pairs))


def _counted(steps: Sequence[int], seen: int) -> float:
    # Of all ways to set the signs, how many give each sum; whole numbers, so nothing is rounded before the end.
    ways = {0: 1}
    for step in steps:
        more: dict[int, int] = {}
        for total, count in ways.items():
            more[total + step] = more.get(total + step, 0) + count
            more[total - step] = more.get(total - step, 0) + count
        ways = more
    return _ratio(sum(count for total, count in ways.items() if abs(total) >= seen), len(steps))


def _ratio(count: int, bits: int) -> float:
    """`count` of the 2 ** `bits` ways, also where neither is a number of floating point."""
    return float(Fraction(count, 2**bits))
