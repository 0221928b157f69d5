"""Names that every model service takes, made of the names that a server gives."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

LONGEST: Final = 64

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_MARK: Final = 6


def wire_names(originals: Iterable[str], prefix: str, reserved: Container[str] = ()) -> dict[str, str]:
    """Original name → name on the wire, all different; one that cannot be made different is left out.

    A name that is `reserved` becomes `mcp_…`.

    Characters other than letters, digits, `_` and `-` become `_`. Where that makes two names equal, and where a name is
    too long, it gets a mark made of the original, so names do not depend on the order, nor on what else changed.
    """
    found = list(dict.fromkeys(originals))
    safe = {original: _free(_UNSAFE.sub("_", prefix + original), reserved) for original in found}
    shared = Counter(safe.values())
    names: dict[str, str] = {}
    taken: set[str] = set()
    for original in sorted(found, key=lambda each: (safe[each] != prefix + each, each)):
        name = safe[original]
        changed = name != prefix + original
        if len(name) > LONGEST or (changed and shared[name] > 1):
            name = _marked(name, original)
        if name not in taken:
            taken.add(name)
            names[original] = name
    return names


def _free(name: str, reserved: Container[str]) -> str:
    return f"mcp_{name}" if name in reserved else name


def _marked(name: str, original: str) -> str:
    mark = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return f"{name[: LONGEST - _MARK - 1]}_{mark}"
