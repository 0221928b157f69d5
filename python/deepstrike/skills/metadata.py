"""What front matter says of a skill."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.skills.front_matter import Broken
from deepstrike.text import well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.skills.front_matter import Document, Value

MAX_NAME: Final = 64
_SPACE = re.compile(r"\s+")
# What opens a bracket that is never closed goes to the end, so nothing is looked at twice.
_TOOL = re.compile(r"[^\s,(]+(?:\([^)]*\)?)?")


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """A skill as the catalogue offers it.

    `allowed_tools` are tool names or globs as they are written (`Bash(git:*)` too); None where the skill does not say.
    An empty tuple narrows nothing either: a skill cannot take all tools away. `effort` is the author's word or number
    for how much work it is. `estimated_tokens` is what reading its body costs: a token for four ASCII characters, one
    for each other character.
    """

    name: str
    description: str
    when_to_use: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    effort: int | str | None = None
    estimated_tokens: int = 0


def metadata_of(document: Document) -> SkillMetadata:
    """Reads the fields that we use, `allowed-tools` and `when-to-use` with hyphens too. Raises `Broken`."""
    fields = _Fields(document.fields, document.lines)
    name = fields.text("name")
    if len(name) > MAX_NAME or any(unicodedata.category(character)[0] in "CZ" for character in name.replace(" ", "")):
        raise Broken(fields.line("name"), f"has a name that is longer than {MAX_NAME} characters or not printable")
    effort = fields.optional_text("effort")
    return SkillMetadata(
        name,
        fields.text("description"),
        fields.optional_text("when_to_use"),
        fields.tools("allowed_tools"),
        int(effort) if effort is not None and re.fullmatch(r"\d{1,9}", effort, re.ASCII) else effort,
        estimated_tokens(document.body),
    )


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few."""
    plain = sum(1 for character in text if character.isascii())
    return len(text) - plain + (plain + 3) // 4


def same_name(name: str) -> str:
    """What two names have in common that a person, or a file system, would take for one."""
    return unicodedata.normalize("NFKC", name).casefold()


def one_line(text: str) -> str:
    """A text on one line, without what could forge another or steer a terminal."""
    flat = _SPACE.sub(" ", well_formed(text)).strip()
    return "".join(character for character in flat if unicodedata.category(character) not in ("Cc", "Cf", "Zl", "Zp"))


class _Fields:
    """Fields by our names; a hyphen in a file's is the same as our underscore."""

    def __init__(self, fields: Mapping[str, Value], lines: Mapping[str, int]) -> None:
        self._fields = {name.replace("-", "_"): value for name, value in fields.items()}
        self._lines = {name.replace("-", "_"): line for name, line in lines.items()}

    def line(self, name: str) -> int:
        return self._lines.get(name, 1)

    def text(self, name: str) -> str:
        found = self.optional_text(name)
        if found is None:
            raise Broken(self.line(name), f"has no {name}")
        return found

    def optional_text(self, name: str) -> str | None:
        value = self._fields.get(name)
        if isinstance(value, list | dict):
            raise Broken(self.line(name), f"has a {name} that is no text")
        return one_line(value or "") or None

    def tools(self, name: str) -> tuple[str, ...] | None:
        if name not in self._fields:
            return None
        value = self._fields[name]
        if isinstance(value, dict):
            raise Broken(self.line(name), f"has {name} that are neither a text nor a list")
        if isinstance(value, list):
            if not all(isinstance(item, str) for item in value):
                raise Broken(self.line(name), f"has {name} in which not every item is a text")
            return tuple(dict.fromkeys(one_line(item) for item in value if isinstance(item, str)))
        return tuple(dict.fromkeys(_TOOL.findall(one_line(value or ""))))
