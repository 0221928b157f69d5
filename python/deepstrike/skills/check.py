"""Checking a folder against the open Agent Skills format (https://agentskills.io/specification)."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from deepstrike.errors import ConfigError
from deepstrike.skills.front_matter import Broken, Document, read
from deepstrike.skills.metadata import MAX_NAME, metadata_of
from deepstrike.skills.places import places, read_below
from deepstrike.tools.rooted import Refused

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from deepstrike.skills.front_matter import Value

MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500
_OPEN: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_OURS: Final = ("when_to_use", "effort", "allowed_tools")
_LONG_BODY: Final = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a skill: an `error` breaks the open format, a `note` does not. Lines count from 1."""

    path: str
    line: int
    level: Literal["error", "note"]
    message: str


@dataclass(frozen=True, slots=True)
class SkillReport:
    """The skill files that were checked, in order, and everything found in them."""

    checked: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        """Whether nothing breaks the format."""
        return all(finding.level != "error" for finding in self.findings)


def check(skill_dir: str | os.PathLike[str]) -> SkillReport:
    """Check the skills in a folder, or the one whose folder it is. Raises `ConfigError` if there is no such folder."""
    root = Path(skill_dir).expanduser().absolute()
    if not root.is_dir():
        raise ConfigError(f"{str(skill_dir)!r} is no folder: name one with skills in it, or that of one skill")
    if any((root / name).is_file() for name in ("SKILL.md", "skill.md")):
        found = [place.path for place in places(root.parent) if place.folder == root.name]
        root = root.parent
    else:
        found = [place.path for place in places(root)]
    names: dict[str, str] = {}
    return SkillReport(tuple(found), tuple(finding for path in found for finding in _of_file(root, path, names)))


def _of_file(root: Path, path: str, names: dict[str, str]) -> Iterator[Finding]:
    try:
        document = read(read_below(root, path))
        name = metadata_of(document).name
    except Broken as error:
        yield Finding(path, error.line, "error", error.message)
        return
    except (Refused, OSError) as error:
        yield Finding(path, 1, "error", f"cannot be read: {error}")
        return
    if names.setdefault(name, path) != path:
        yield Finding(path, document.lines["name"], "error", f"has the name of {names[name]}")
    yield from _of_document(path, document)


def _of_document(path: str, document: Document) -> Iterator[Finding]:
    def at(field: str, level: Literal["error", "note"], message: str) -> Finding:
        return Finding(path, document.lines.get(field, 1), level, message)

    if document.repaired is not None:
        message = "is no YAML; it is read as if the text with a colon stood in quotes, put it in quotes"
        yield Finding(path, document.repaired, "error", message)
    folder = path.rpartition("/")[0] or None
    if folder is None:
        yield at("name", "note", "is a flat file: the open format wants a folder with SKILL.md")
    for message in _of_name(str(document.fields["name"]), folder):
        yield at("name", "error", message)
    for field, value in document.fields.items():
        if field in _OURS:
            yield at(field, "note", f"{field} is deepstrike's own; other agents may refuse or ignore it")
        elif field not in _OPEN:
            yield at(field, "error", f"{field} is no field of the open format; put it under metadata")
        elif (problem := _of_field(field, value)) is not None:
            yield at(field, "error", problem)
    if document.body.count("\n") >= _LONG_BODY:
        yield Finding(path, 1, "note", f"has more than {_LONG_BODY} lines; move some into files beside it")


def _of_name(name: str, folder: str | None) -> Iterator[str]:
    name = unicodedata.normalize("NFKC", name.strip())
    if len(name) > MAX_NAME:
        yield f"the name has more than {MAX_NAME} characters"
    if name != name.lower() or not all(part.isalnum() for part in name.split("-")):
        yield f"the name {name!r} must be lowercase letters and digits with single hyphens between them"
    if folder is not None and unicodedata.normalize("NFKC", folder) != name:
        yield f"the name {name!r} must be that of its folder, {folder!r}"


def _of_field(field: str, value: Value) -> str | None:
    """What is wrong with the value of a field of the open format, if something is; the name is looked at elsewhere."""
    match field, value:
        case "description", str() if not 0 < len(value) <= MAX_DESCRIPTION:
            return f"the description must have 1 to {MAX_DESCRIPTION} characters"
        case "compatibility", _ if not (isinstance(value, str) and value.strip() and len(value) <= MAX_COMPATIBILITY):
            return f"compatibility must be a text of 1 to {MAX_COMPATIBILITY} characters"
        case "metadata", _ if not (isinstance(value, dict) and all(isinstance(item, str) for item in value.values())):
            return "metadata must map texts to texts"
        case "license", _ if not isinstance(value, str):
            return "license must be a text"
    return None
