"""The tools that a skill names, as globs over the tools of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deepstrike.kernel import glob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_PATTERN = re.compile(r"\(.*\)?$", re.DOTALL)
_OURS: Final = {"Bash": "run_command", "Read": "read_file"}
"""Tools that skills of other agents name, and that the package itself brings under another name."""


def globs(words: Iterable[str] | None) -> tuple[str, ...]:
    """The globs of `SkillMetadata.allowed_tools`, each once. None, and no words, are no globs: they narrow nothing.

    A word is a glob over a tool's whole name, as in governance. What stands in brackets behind it (`Bash(git:*)`) is
    about another agent's arguments and is left out, so the word is about the whole tool.
    """
    found: list[str] = []
    for word in words or ():
        name = _PATTERN.sub("", word).strip()
        found += [name, _OURS[name]] if name in _OURS else [name]
    return tuple(dict.fromkeys(name for name in found if name))


def unknown(words: Iterable[str] | None, tools: Collection[str]) -> tuple[str, ...]:
    """The words that fit none of these tools."""
    return tuple(
        word for word in words or () if not any(glob(pattern, tool) for pattern in globs((word,)) for tool in tools)
    )
