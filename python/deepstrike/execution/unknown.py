"""What is said of a tool that is not there."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LISTED: Final = 50
"""So many names an error lists."""


def nearest_first(name: str, there: Iterable[str]) -> list[str]:
    """What there is, those that look like `name` first."""
    names = sorted(there)
    nearest = difflib.get_close_matches(name[:100], names, n=3, cutoff=0.5)
    return [*nearest, *(other for other in names if other not in nearest)]


def unknown_tool(name: str, there: Iterable[str]) -> str:
    """Says what there is, the nearest name first."""
    names = sorted(there)
    if not names:
        return f"there is no tool {name[:100]!r}; available: none"
    listed = nearest_first(name, names)
    more = len(listed) - MAX_LISTED
    return f"there is no tool {name[:100]!r}; available: {', '.join(listed[:MAX_LISTED])}" + (
        f" and {more} more" if more > 0 else ""
    )
