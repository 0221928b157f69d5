"""The references of a session's blobs: they begin with a digest of its id, so in no two sessions are they the same.

Nor does a text that names one weigh the same tokens in two sessions; how many is told where such a text is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_REF: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}-([0-9a-f]{32})(?![0-9a-f])")
# Quotes within texts are escaped, so no text can look like it.
_KEPT_IN: Final = re.compile(rb'"ref":"([0-9a-f]{32})-[0-9a-f]{32}"')
_NOBODYS: Final = "0" * 32
# The kernel's words, in `compress/elide.rs`.
_WEIGHT: Final = r"(?<=\[result left out, )\d+(?= tokens; recall\()"
_WEIGHT_IN_LINE: Final = re.compile(_WEIGHT.encode())
_WEIGHT_IN_TEXT: Final = re.compile(_WEIGHT)


def without_owner(lines: Sequence[bytes]) -> Sequence[bytes]:
    """Records in which the blobs that results are kept in are called by their content alone, wherever a text does.

    How many tokens of a result were left out is not told in them.
    """
    for shelf in {found[1] for line in lines for found in _KEPT_IN.finditer(line)}:
        lines = [line.replace(shelf, _NOBODYS.encode()) for line in lines]
    return [_WEIGHT_IN_LINE.sub(b"0", line) for line in lines]


def ownerless(text: str) -> str:
    """`text` with every blob that it names called by its content alone, and no word of what left-out results weigh."""
    return _WEIGHT_IN_TEXT.sub("0", _REF.sub(rf"{_NOBODYS}-\1", text))


def renamed(text: str, there: Iterable[str]) -> str:
    """`text` with the blobs that it names called as they are in the texts that are `there`, where one names them."""
    if _REF.search(text) is None:
        return text
    known = {found[1]: found[0] for other in there for found in _REF.finditer(other)}
    return _REF.sub(lambda found: known.get(found[1], found[0]), text)
