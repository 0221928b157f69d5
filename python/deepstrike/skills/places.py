"""Where skills lie, and reading files there without ever leaving the folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepstrike.tools.rooted import Refused, open_below

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILE: Final = 1024 * 1024
MAX_FILES: Final = 500
"""Files of one skill that are listed."""
_DEPTH: Final = 8
_SKILL_FILES: Final = ("SKILL.md", "skill.md")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A skill's file, as a path below the skill folder with `/`, and the state by which a change is seen."""

    path: str
    state: tuple[int, int, int, int]

    @property
    def folder(self) -> str | None:
        """The folder that the skill has to itself; None for a flat file."""
        head, _, _ = self.path.rpartition("/")
        return head or None


def places(root: Path) -> Iterator[Place]:
    """Every `NAME/SKILL.md` and every `*.md` in `root`, by name; hidden ones are none. Raises `OSError`.

    What looks like a skill and cannot be one (a link to nowhere) has a place too, so that somebody is told.
    """
    for name in sorted(os.listdir(root)):
        if name.startswith("."):
            continue
        inner = next((f"{name}/{file}" for file in _SKILL_FILES if (root / name / file).is_file()), None)
        if inner is not None:
            yield Place(inner, _state(root / inner))
        elif name.lower().endswith(".md"):
            yield Place(name, _state(root / name))


def read_below(root: Path, path: str, limit: int = MAX_FILE) -> bytes:
    """The bytes of a regular file below `root`, whatever `path` is. Raises `Refused` or `OSError`."""
    with os.fdopen(open_below(root, path), "rb", buffering=0) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"it has more than {limit} bytes")
    return data


def files_in(root: Path, folder: str) -> list[str]:
    """The files of a skill beside its own, as paths below its folder with `/`, by name, at most `MAX_FILES`.

    Only those that can be opened by these paths: nothing hidden, no pipe, no link that leads out, and no name that is
    refused or would not stay on its line. Folders behind links are not looked into.
    """
    found: list[str] = []
    base = root / folder
    for place, folders, files in os.walk(base):
        inside = Path(place).relative_to(base)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and len(inside.parts) < _DEPTH)
        paths = ((inside / name).as_posix() for name in sorted(files))
        found += [path for path in paths if _can_be_read(root, folder, path)]
        if len(found) > MAX_FILES:
            break
    return sorted(name for name in found if name not in _SKILL_FILES)[:MAX_FILES]


def _can_be_read(root: Path, folder: str, path: str) -> bool:
    if path.rpartition("/")[2].startswith(".") or not path.isprintable():
        return False
    try:
        check_path(path)
        os.close(open_below(root, f"{folder}/{path}"))
    except (Refused, OSError):
        return False
    return True


def check_path(path: str) -> None:
    """Refuse what is no plain relative path with `/`, also what only another system would read otherwise."""
    if "\\" in path or ":" in path:
        raise Refused("a path is relative, with / between names, and has no \\ or :")
    names = path.split("/")
    if path.startswith("/") or ".." in names:
        raise Refused("it is outside")
    if any(_RESERVED.fullmatch(name) or name != name.rstrip(". ") for name in names if name != "."):
        raise Refused("a name in it is reserved on some systems")


def _state(path: Path) -> tuple[int, int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
