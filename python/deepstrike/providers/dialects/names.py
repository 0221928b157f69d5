"""Tool names on the wire: hosts take only letters, digits, `_` and `-`, at most 64 of them.

Some (Gemini, Kimi) want a letter in front.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepstrike.wire.message import ToolSpec

_LIMIT = 64
_fits = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}").fullmatch
_no_letter = re.compile(r"(?![a-zA-Z])").match
_odd = re.compile(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """`name` itself where hosts accept it, else a legible form with a hash of the whole name, always the same one."""
    if _fits(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    legible = _odd.sub("_", f"tool_{name}" if _no_letter(name) else name)
    return f"{legible[: _LIMIT - len(digest) - 1]}_{digest}"


def names_back(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Wire name → tool name, for the tools whose name changes on the wire."""
    changed = ((wire_name(tool.name), tool.name) for tool in tools)
    return {wire: name for wire, name in changed if wire != name}
