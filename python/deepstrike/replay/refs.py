"""The references of a session's blobs: they begin with a digest of its id, so in no two sessions are they the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_REF: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}-([0-9a-f]{32})(?![0-9a-f])")
# Quotes within texts are escaped, so no text can look like it.
_KEPT_IN: Final = re.compile(rb'"ref":"([0-9a-f]{32})-[0-9a-f]{32}"')
_NOBODYS: Final = "0" * 32


def without_owner(lines: Sequence[bytes]) -> Sequence[bytes]:
    """Records in which the blobs that results are kept in are called by their content alone, wherever a text does."""
    for shelf in {found[1] for line in lines for found in _KEPT_IN.finditer(line)}:
        lines = [line.replace(shelf, _NOBODYS.encode()) for line in lines]
    return lines


def ownerless(text: str) -> str:
    """`text` with every blob that it names called by its content alone."""
    return _REF.sub(rf"{_NOBODYS}-\1", text)


def renamed(text: str, there: Iterable[str]) -> str:
    """`text` with the blobs that it names called as they are in the texts that are `there`, where one names them."""
    if _REF.search(text) is None:
        return text
    known = {found[1]: found[0] for other in there for found in _REF.finditer(other)}
    return _REF.sub(lambda found: known.get(found[1], found[0]), text)
