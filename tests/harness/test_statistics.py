"""Pass rates, held against figures that were worked out another way."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from deepstrike.harness.evaluate.statistics import Interval, chance, difference, passes_all, rate


def close(interval: Interval | None, value: float, low: float, high: float) -> bool:
    """Whether an interval is this one, to three places."""
    assert interval is not None
    return (round(interval.value, 3), round(interval.low, 3), round(interval.high, 3)) == (value, low, high)


def test_given_proportions_when_their_intervals_are_taken_then_they_are_wilsons() -> None:
    # The first two are in R. G. Newcombe, Two-sided confidence intervals for the single proportion (1998), table I.
    assert close(rate([1.0] * 81 + [0.0] * 182), 0.308, 0.255, 0.366)
    assert close(rate([1.0] * 15 + [0.0] * 133), 0.101, 0.062, 0.16)
    assert close(rate([0.0] * 20), 0.0, 0.0, 0.161)
    assert close(rate([1.0]), 1.0, 0.207, 1.0)
    assert rate([]) is None


@pytest.mark.parametrize(("n", "p"), [(10, 0.5), (40, 0.9), (100, 0.3)])
def test_given_many_samples_when_their_intervals_are_taken_then_about_95_in_100_hold_the_truth(
    n: int, p: float
) -> None:
    draw = random.Random(7)
    hits = 0
    for _ in range(2_000):
        interval = rate([float(draw.random() < p) for _ in range(n)])
        assert interval is not None
        hits += interval.low <= p <= interval.high

    assert 0.92 <= hits / 2_000 <= 0.99


def test_given_trials_of_a_case_when_k_are_drawn_then_pass_k_is_the_part_of_all_draws_that_passed() -> None:
    for passed, trials, k in itertools.product(range(6), [5], range(1, 6)):
        draws = list(itertools.combinations([True] * passed + [False] * (trials - passed), k))
        assert passes_all(passed, trials, k) == sum(map(all, draws)) / len(draws)


def brute(differences: list[int]) -> float:
    """The share of all ways to set the signs whose sum is as far from 0."""
    every = itertools.product((1, -1), repeat=len(differences))
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in every]
    return sum(abs(each) >= abs(sum(differences)) for each in sums) / len(sums)


def test_given_differences_when_signs_are_flipped_in_every_way_then_the_chance_is_their_share() -> None:
    draw = random.Random(3)
    for most in (1, 3):
        for _ in range(40):
            differences = [draw.randint(-most, most) for _ in range(draw.randint(0, 9))]
            assert chance(differences) == pytest.approx(brute(differences), abs=1e-12)


def test_given_pairs_of_yes_and_no_when_they_differ_then_the_chance_is_mcnemars_exact_one() -> None:
    for b, c in [(5, 0), (6, 0), (1, 9), (10, 10), (0, 0)]:
        tail = sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c)
        assert chance([1] * b + [-1] * c + [0] * 30) == pytest.approx(min(1.0, 2 * tail))
    assert chance([1] * 5) == 0.0625
    assert chance([1] * 6) == 0.03125


def test_given_very_many_pairs_when_compared_then_it_is_done_soon_and_agrees_with_counting() -> None:
    draw = random.Random(5)
    many = [draw.choice((-3, -2, -1, 1, 2, 3)) for _ in range(3_000)]
    few = many[:400]

    assert chance([1] * 5_200 + [-1] * 4_800) == pytest.approx(6.5e-5, rel=0.05)
    assert chance(many) == pytest.approx(math.erfc(abs(sum(many)) / math.sqrt(2 * sum(d * d for d in many))))
    assert chance(few) == pytest.approx(math.erfc(abs(sum(few)) / math.sqrt(2 * sum(d * d for d in few))), abs=0.02)


def test_given_pairs_when_their_difference_is_taken_then_the_interval_is_newcombes() -> None:
    # 36 both, 12 only the first, 2 only the second, 0 neither.
    left = [1.0] * 36 + [1.0] * 12 + [0.0] * 2
    right = [1.0] * 36 + [0.0] * 12 + [1.0] * 2
    phi = (36 * 0 - 12 * 2) / math.sqrt(48 * 2 * 38 * 12)
    a, b = rate(left), rate(right)
    assert a is not None
    assert b is not None
    up, down = (b.high - b.value, a.value - a.low), (b.value - b.low, a.high - a.value)
    below, above = (math.sqrt(x * x - 2 * phi * x * y + y * y) for x, y in (down, up))

    found = difference(left, right)

    assert found.value == pytest.approx(-0.2)
    assert found.low == pytest.approx(-0.2 - below)
    assert found.high == pytest.approx(-0.2 + above)


def test_given_pairs_that_all_agree_when_their_difference_is_taken_then_few_of_them_are_no_certainty() -> None:
    few, many = difference([1.0, 0.0], [1.0, 0.0]), difference([1.0, 0.0] * 500, [1.0, 0.0] * 500)

    assert (few.value, many.value) == (0.0, 0.0)
    assert few.high - few.low > 1
    assert 0 < many.high - many.low < 0.01


def test_given_pairs_that_mostly_agree_when_their_difference_is_taken_then_the_correlation_is_corrected() -> None:
    # 43 both, 0 only the first, 1 only the second, 12 neither: ad - bc = 516, less n/2.
    left, right = [1.0] * 43 + [0.0] * 13, [1.0] * 44 + [0.0] * 12
    phi = (43 * 12 - 56 / 2) / math.sqrt(43 * 13 * 44 * 12)
    a, b = rate(left), rate(right)
    assert a is not None
    assert b is not None
    x, y = b.value - b.low, a.high - a.value

    assert difference(left, right).low == pytest.approx(1 / 56 - math.sqrt(x * x - 2 * phi * x * y + y * y))


def test_given_two_agents_that_are_alike_when_compared_many_times_then_few_are_called_different() -> None:
    draw = random.Random(11)
    wrong = sum(
        chance([int(draw.random() < 0.7) - int(draw.random() < 0.7) for _ in range(60)]) <= 0.05 for _ in range(2_000)
    )

    assert wrong / 2_000 <= 0.05
