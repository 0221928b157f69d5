"""What is said of a tool that is not there."""

from __future__ import annotations

import difflib
import heapq
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_LISTED: Final = 50
"""So many names an error lists."""

_LONGEST: Final = 100
"""So much of the name that was asked for is looked at and shown."""
_NEAREST: Final = 3
_COMPARED: Final = 32
"""So many names are compared letter by letter."""
_MATCHED: Final = 64
"""So many letters of them."""
_LEAST_ALIKE: Final = 0.5
_LOOSE: Final = b"_- "

_PREFIX: Final = re.compile(r".*(?:[.:/]|__)", re.DOTALL)
_PREFIX_ENDS: Final = (".", ":", "/", "__")


def nearest_first(name: str, there: Iterable[str]) -> list[str]:
    """What there is, those that look like `name` first, at most three: the same but for its case; else without a prefix
    such as `functions.`; else without `-` and `_`; else behind a prefix; else with letters in common.
    """
    names = list(there)
    nearest = _nearest(name[:_LONGEST], names)
    return [*nearest, *(other for other in sorted(names) if other not in nearest)]


def unknown_tool(name: str, there: Iterable[str]) -> str:
    """Says what there is, the nearest name first. It takes milliseconds for tens of thousands of names."""
    names = list(there)
    if not names:
        return f"there is no tool {name[:_LONGEST]!r}; available: none"
    nearest = _nearest(name[:_LONGEST], names)
    others = (other for other in heapq.nsmallest(MAX_LISTED + _NEAREST, names) if other not in nearest)
    listed = [*nearest, *others][:MAX_LISTED]
    more = len(names) - len(listed)
    return f"there is no tool {name[:_LONGEST]!r}; available: {', '.join(listed)}" + (
        f" and {more} more" if more > 0 else ""
    )


def _nearest(name: str, names: list[str]) -> list[str]:
    """All names are searched as one text, a line for each: that is many times faster than one by one."""
    names = [each for each in names if "\n" not in each]
    lower = _bytes("\n{}\n".format("\n".join(names)).casefold())
    folded = lower.translate(None, _LOOSE)
    whole = name.casefold()
    last = _PREFIX.sub("", whole) or whole
    for text, wanted in ((lower, whole), (lower, last), (folded, _folded(whole)), (folded, _folded(last))):
        if wanted and (same := _lines(text, f"\n{wanted}\n", _NEAREST)):
            return [names[at] for at in same]
    behind = {at for mark in _PREFIX_ENDS for at in _lines(lower, f"{mark}{last}\n", _NEAREST)}
    if last and behind:
        return sorted(names[at] for at in behind)[:_NEAREST]
    return _alike(_folded(last)[:_MATCHED], names, folded)


def _folded(text: str) -> str:
    return _bytes(text.casefold()).translate(None, _LOOSE).decode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _lines(text: bytes, piece: str, most: int) -> list[int]:
    """The numbers of the first lines that hold the piece, which has one line break."""
    found: list[int] = []
    sought = _bytes(piece)
    number, counted = -1, 0
    at = text.find(sought)
    while at >= 0 and len(found) < most:
        number += text.count(b"\n", counted, at + 1)
        counted = at + 1
        found.append(number)
        at = text.find(sought, at + 1)
    return found


def _alike(wanted: str, names: list[str], folded: bytes) -> list[str]:
    """By letters in common, the most alike first."""
    matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)
    rated: list[tuple[float, str]] = []
    for at in range(len(names)) if len(names) <= _COMPARED else _candidates(wanted, folded):
        matcher.set_seq1(_folded(names[at])[:_MATCHED])
        if matcher.real_quick_ratio() >= _LEAST_ALIKE and matcher.quick_ratio() >= _LEAST_ALIKE:
            rated.append((-matcher.ratio(), names[at]))
    return [each for ratio, each in sorted(rated) if -ratio >= _LEAST_ALIKE][:_NEAREST]


def _candidates(wanted: str, folded: bytes) -> list[int]:
    """The lines that begin or end most like the name: one typing error leaves its beginning or its end intact."""
    begun = _sharing(folded, len(wanted), lambda size: f"\n{wanted[:size]}")
    ended = _sharing(folded, len(wanted), lambda size: f"{wanted[-size:]}\n")
    return sorted({*begun, *ended})


def _sharing(text: bytes, longest: int, piece: Callable[[int], str]) -> list[int]:
    """The lines that share the longest piece with the name, and if these are few those that share half of it."""
    size = bisect_left(range(1, longest + 1), True, key=lambda size: not _lines(text, piece(size), 1))
    found: list[int] = []
    while size and len(found) < _COMPARED // 2:
        found = list(dict.fromkeys((*found, *_lines(text, piece(size), _COMPARED // 2))))[: _COMPARED // 2]
        size //= 2
    return found
