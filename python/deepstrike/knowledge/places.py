"""Where files lie, and where an index of them is kept when nobody says so."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepstrike.text import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Found:
    """A file as a path below the folder with `/`, and the state by which a change is seen."""

    path: str
    mtime_ns: int
    size: int


def files_below(root: Path) -> Iterator[Found]:
    """The regular files in a folder and those in it, by path; no hidden ones, no links, and none
    whose names are no text. Raises `OSError`."""
    os.scandir(root).close()  # `walk` would pass over a root that cannot be read
    count = 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(filter(_is_shown, folders))
        for name in sorted(filter(_is_shown, names)):
            path = Path(place, name)
            if path.is_symlink() or not path.is_file():
                continue
            try:
                state = path.stat()
            except OSError:
                continue
            yield Found(path.relative_to(root).as_posix(), state.st_mtime_ns, state.st_size)
            count += 1
            if count >= MAX_FILES:
                return


def _is_shown(name: str) -> bool:
    """Not hidden, and a name that can be written as text."""
    return not name.startswith(".") and well_formed(name) == name


def default_index(root: Path) -> Path:
    """A file for the index of `root` in the user's cache folder, or below `$DEEPSTRIKE_HOME` where that is set.

    The cache folder is `$XDG_CACHE_HOME` or `~/.cache`, `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows.
    """
    named = os.environ.get("DEEPSTRIKE_HOME")
    home = Path(named).expanduser().absolute() if named else _cache_folder() / "deepstrike"
    key = sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return home / "knowledge" / f"{key}.db"


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return _named("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return _named("XDG_CACHE_HOME", Path.home() / ".cache")


def _named(variable: str, otherwise: Path) -> Path:
    """The folder that a variable names; as XDG has it, one that is not absolute does not count."""
    value = os.environ.get(variable, "")
    return Path(value) if os.path.isabs(value) else otherwise
