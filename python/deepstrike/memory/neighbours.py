"""Turns that a question means although its words stand in the turn beside them.

People answer without repeating the question, so the turn that is looked for often has none of its words. Each turn is
therefore scored by its own words and by those around it in the same session. A turn and the next have numbers that
differ by one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SENTENCE = re.compile(r"[.!\n]\s+(?=\S)|[。！](?=.)")
CANDIDATES: Final = 120
"""How many of the best by their own words are looked at."""
SHARES: Final = {-2: 0.05, -1: 0.2, 1: 0.5, 2: 0.3}
"""How much of a turn's score the turn at this distance behind it gets."""
ANSWER: Final = 1.0
"""How much the next turn gets of one that only asks: it is the answer. After one that says more too, it is less."""
MEMORY_WEIGHT: Final = 1.5
"""A memory has no neighbours, and says what the turns that it was drawn from come to."""


def with_neighbours(scores: Mapping[int, float], asking: Mapping[int, float], there: Iterable[int]) -> dict[int, float]:
    """The scores of turns, with what they get from their neighbours.

    `scores` are those of the turns with words of the question, `asking` tells how much of each of them asks (from 0 to
    1, as `asks` has it), and `there` are all turns that exist around them.
    """
    gained = {number: scores.get(number, 0.0) for number in there}
    for number, score in scores.items():
        for distance, share in SHARES.items():
            if number + distance in gained:
                more = (ANSWER - share) * asking.get(number, 0.0) if distance == 1 else 0.0
                gained[number + distance] += score * (share + more)
    return gained


def around(numbers: Iterable[int]) -> set[int]:
    """The turns themselves and those that may get something from them."""
    return {number + distance for number in numbers for distance in (0, *SHARES)}


def asks(text: str) -> float:
    """How much of a turn is the question that it ends with: 0 where it ends with none, 1 where it is nothing else."""
    said = text.rstrip()
    if not said.endswith(("?", "？", "؟")):
        return 0.0
    before = max((end.end() for end in _SENTENCE.finditer(said)), default=0)
    return (len(said) - before) / len(said)
