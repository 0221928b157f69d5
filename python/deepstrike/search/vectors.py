"""Vectors as bytes, and the nearest of many without a library for numbers.

A vector's signs, as one large integer, tell nearly as much as the vector; comparing them costs a hundredth
of a product. So the nearest by signs are found first, and only they are multiplied out.
"""

from __future__ import annotations

import sys
from array import array
from math import sqrt
from operator import mul
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SIFTED: Final = 400
"""How many of the nearest by signs are multiplied out."""
ALL: Final = 2_000
"""Up to so many vectors, all are."""


def packed(vector: Sequence[float]) -> bytes:
    """The vector with length 1, as 32-bit floats, the lowest byte first. A vector of zeros stays one."""
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    values = array("f", (value / length for value in vector))
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def unpacked(data: bytes) -> array[float]:
    """What `packed` has made."""
    values = array("f")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def signs(vector: Sequence[float]) -> int:
    """One bit a number, set where it is above zero."""
    return int("".join("1" if value > 0 else "0" for value in vector) or "0", 2)


def nearest(
    question: Sequence[float], known: Mapping[int, int], vector_of: Callable[[Sequence[int]], Mapping[int, bytes]]
) -> list[int]:
    """The numbers of the vectors nearest to `question` by angle, nearest first; none at a right angle or beyond.

    `known` has the signs of every vector, `vector_of` gives packed vectors by number.
    """
    asked = unpacked(packed(question))
    products = {
        number: sum(map(mul, asked, unpacked(data))) for number, data in vector_of(_sifted(asked, known)).items()
    }
    return sorted((number for number, product in products.items() if product > 0), key=lambda n: (-products[n], n))


def _sifted(asked: Sequence[float], known: Mapping[int, int]) -> list[int]:
    if len(known) <= ALL:
        return list(known)
    pattern = signs(asked)
    distances = sorted(((pattern ^ bits).bit_count(), number) for number, bits in known.items())
    return [number for _, number in distances[:SIFTED]]
