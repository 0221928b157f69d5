"""Joining lists that were ranked by different measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAMPING: Final = 60
"""Cormack, Clarke and Büttcher, 2009: how little the first places stand out."""


def fused(*ranked: Sequence[int]) -> list[tuple[int, float]]:
    """Everything in the lists, best first, by reciprocal rank: the sum of `1 / (60 + place)`, places from 1 on.

    Equal sums stand by number, so the outcome depends on nothing else.
    """
    scores: dict[int, float] = {}
    for numbers in ranked:
        for place, number in enumerate(numbers, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_DAMPING + place)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
