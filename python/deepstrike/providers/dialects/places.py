"""Where cache breakpoints stand among the messages of a request (context.md, R6).

Three places: the end of `turns[0]`, where the request before ended, and the end. What that request wrote to the cache
is found at the second place, however many blocks a turn has. The places follow from the turns alone, so the same log
gives the same marks in a new process. A fourth one, behind slots 1 and 2 and the tools, stands in the head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.dialects.base import Asked

BREAKPOINTS: Final = "cache_breakpoints"
"""Trait of models that cache by marked places."""

NOWHERE: Final = -1
_FIRST, _BEFORE, _LAST = 0, 1, 2


def no_places() -> list[int]:
    """The places in a request without messages; a dialect may keep more behind them."""
    return [NOWHERE] * 3


def note_end(places: list[int], at: int) -> None:
    """A message of the user's side ends at the offset `at`."""
    if places[_FIRST] == NOWHERE:
        places[_FIRST] = at
    places[_LAST] = at


def note_reply(places: list[int]) -> None:
    """The model has replied to what came before: there the request before ended."""
    places[_BEFORE] = places[_LAST]


def standing(places: Sequence[int]) -> list[int]:
    """The offsets at which marks stand, in order: at most three."""
    return sorted({at for at in places[: _LAST + 1] if at != NOWHERE})


def spliced(body: bytearray, places: Sequence[int], mark: bytes) -> list[bytes | memoryview]:
    """The body in pieces, with `mark` at every place. Without a mark it is one piece."""
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    start = 0
    for at in standing(places) if mark else ():
        pieces += (view[start:at], mark)
        start = at
    pieces.append(view[start:])
    return pieces


def are_marked(asked: Asked) -> bool:
    """Whether this model's requests get breakpoints: at the vendor's own address, unless the caller wants none."""
    wanted = asked.request.extensions.get("cache_ttl") != "off"
    return wanted and asked.own_address and BREAKPOINTS in asked.info.traits
