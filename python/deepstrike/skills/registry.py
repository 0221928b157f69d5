"""The skills of a folder: found, offered, read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ToolError
from deepstrike.skills.catalogue import catalogue
from deepstrike.skills.front_matter import Broken, read
from deepstrike.skills.metadata import SkillMetadata, metadata_of, same_name
from deepstrike.skills.places import Place, check_path, files_in, places, read_below
from deepstrike.text import path_text, printable
from deepstrike.tools.rooted import Refused

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

_logger = logging.getLogger("deepstrike")
_SHOWN: Final = 200
_KNOWN_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill in full. `files` are the further files of its folder, to be read by those paths."""

    metadata: SkillMetadata
    body: str
    files: tuple[str, ...]

    @property
    def text(self) -> str:
        """What the model gets: the body, and the paths of the files."""
        if not self.files:
            return self.body
        listed = "\n".join(f"- {path}" for path in self.files)
        return f"{self.body}\n\n[Files of this skill, to be read by these paths:]\n{listed}"


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """Why a file is no skill: its path below the folder, a line from 1 on, the reason. As text, one printable line."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return printable(f"{self.path}:{self.line}: {self.message}")


@dataclass(frozen=True, slots=True)
class _Entry:
    place: Place
    metadata: SkillMetadata | None
    problem: SkillProblem | None


class SkillRegistry:
    """The skills below `skill_dir`: flat `*.md` files and `NAME/SKILL.md` folders of the open Agent Skills format.

    They go by the name in their front matter. Nothing is read before it is asked for, and nothing outside the folder
    ever: no name or path leads out of it, and no link is followed out of it. A folder that is not there has no skills.
    Safe to use from several threads. All methods read files, so call them in a thread where a loop must not wait.

    Raises `ConfigError` for what is no path.
    """

    def __init__(self, skill_dir: str | os.PathLike[str]) -> None:
        self._root = Path(path_text("skill_dir", skill_dir)).absolute()
        self._lock = Lock()
        self._entries: dict[str, _Entry] = {}
        self._told: set[tuple[Place, str]] = set()
        self._unknown: set[tuple[str, str]] = set()
        self._problems: tuple[SkillProblem, ...] = ()

    @property
    def problems(self) -> tuple[SkillProblem, ...]:
        """What the last scan could not use."""
        return self._problems

    def scan(self) -> list[SkillMetadata]:
        """The skills as they lie on the disk now, by name. Only files that changed since the last scan are read.

        A file that is no skill, or has a name that another has already, is left out with one warning in the log
        `deepstrike`, which names file and line; it is not repeated until the file changes.
        """
        return [entry.metadata for entry in self._scanned().values() if entry.metadata is not None]

    def catalogue(self, max_tokens: int) -> str:
        """The text that offers the skills to the model, in at most about `max_tokens`; empty if there are none."""
        return catalogue(self.scan(), max_tokens)

    def report(self, unknown: Mapping[str, Sequence[str]]) -> None:
        """Warn, once for each, of words in `allowed_tools` that fit no tool, by the skills that name them."""
        with self._lock:
            new = {(name, word) for name, words in unknown.items() for word in words} - self._unknown
            self._unknown |= new
        for name, word in sorted(new):
            _logger.warning("skill %s: its allowed_tools name %s, which fits no tool: it allows nothing", name, word)

    def load(self, name: str) -> Skill:
        """The skill with this name. Raises `ToolError`, which lists the names that there are."""
        entry = self._named(name)
        try:
            document = read(read_below(self._root, entry.place.path))
            metadata = metadata_of(document)
        except (Broken, Refused, OSError) as error:
            raise ToolError(f"the skill {_shown(name)} cannot be read: {_reason(error)}") from error
        folder = entry.place.folder
        return Skill(metadata, document.body, tuple(files_in(self._root, folder)) if folder is not None else ())

    def read(self, name: str, path: str) -> str:
        """A text file of the skill's folder, by its path below it. Raises `ToolError`.

        The path is one of those that `load` lists, or another below the folder: relative, with `/`, at most 1 MiB.
        """
        entry = self._named(name)
        folder = entry.place.folder
        if folder is None:
            raise ToolError(f"the skill {_shown(name)} is a single file and has no others")
        try:
            check_path(path)
            return _text(read_below(self._root, f"{folder}/{path}"))
        except (Refused, OSError, ValueError) as error:
            raise ToolError(
                f"{_shown(path)} of the skill {_shown(name)} cannot be read: {_reason(error)}",
                hint=f"its files: {', '.join(files_in(self._root, folder)) or 'none'}",
            ) from error

    def _named(self, name: str) -> _Entry:
        found = self._scanned()
        entry = found.get(name) or found.get(name.strip())
        if entry is None:
            known = ", ".join(list(found)[:_KNOWN_SHOWN]) or "none"
            raise ToolError(f"there is no skill {_shown(name)}", hint=f"known skills: {known}")
        return entry

    def _scanned(self) -> dict[str, _Entry]:
        """The skills by name, in their order."""
        with self._lock:
            try:
                found = list(places(self._root))
            except (FileNotFoundError, NotADirectoryError):
                found = []
            except OSError as error:
                _logger.warning("the skill folder %s cannot be read: %s", self._root, error.strerror or error)
                found = []
            self._entries = {place.path: self._entry(place) for place in found}
            named, doubles = _by_name(self._entries.values())
            self._report(doubles)
            return named

    def _entry(self, place: Place) -> _Entry:
        known = self._entries.get(place.path)
        if known is not None and known.place == place:
            return known
        try:
            return _Entry(place, metadata_of(read(read_below(self._root, place.path))), None)
        except Broken as error:
            return _Entry(place, None, SkillProblem(place.path, error.line, error.message))
        except (Refused, OSError) as error:
            return _Entry(place, None, SkillProblem(place.path, 1, f"cannot be read: {_reason(error)}"))

    def _report(self, doubles: Sequence[tuple[_Entry, SkillProblem]]) -> None:
        broken = [(entry, entry.problem) for entry in self._entries.values() if entry.problem is not None]
        told: set[tuple[Place, str]] = set()
        for entry, problem in (*broken, *doubles):
            told.add((entry.place, problem.message))
            if (entry.place, problem.message) not in self._told:
                _logger.warning("skill left out: %s/%s", printable(str(self._root)), problem)
        self._told = told
        self._problems = tuple(problem for _, problem in (*broken, *doubles))


def _by_name(entries: Iterable[_Entry]) -> tuple[dict[str, _Entry], list[tuple[_Entry, SkillProblem]]]:
    """The skills by name, and those whose name another one had before them, in the order of paths."""
    first: dict[str, _Entry] = {}
    named: dict[str, _Entry] = {}
    doubles: list[tuple[_Entry, SkillProblem]] = []
    for entry in entries:
        if entry.metadata is None:
            continue
        name = entry.metadata.name
        before = first.setdefault(same_name(name), entry)
        if before is entry:
            named[name] = entry
        else:
            message = f"has the name {name!r}, which {before.place.path} has already"
            doubles.append((entry, SkillProblem(entry.place.path, 1, message)))
    return dict(sorted(named.items())), doubles


def _text(data: bytes) -> str:
    if b"\0" in data:
        raise Refused("it is no text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused("it is no UTF-8 text") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
