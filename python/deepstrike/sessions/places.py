"""Where sessions are kept when nobody says so, and which log a path means."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.given_path import given_path
from deepstrike.sessions.sqlite import SqliteSessionLog

if TYPE_CHECKING:
    from deepstrike.sessions.durability import Durability

_DATABASE_ENDINGS: Final = (".db", ".sqlite", ".sqlite3")
_SQLITE_MAGIC: Final = b"SQLite format 3\0"


def home() -> Path:
    """The folder of all that deepstrike keeps for this user: `$DEEPSTRIKE_HOME`, else one in the user's data folder.

    That is `$XDG_DATA_HOME` or `~/.local/share`, `~/Library/Application Support` on macOS, `%LOCALAPPDATA%` on Windows.
    An empty variable counts as none; `~` is the user's. Nothing is made. Raises `ConfigError` where this user has no
    home.
    """
    named = os.environ.get("DEEPSTRIKE_HOME")
    try:
        return Path(named).expanduser().absolute() if named else _data_folder() / "deepstrike"
    except RuntimeError as error:
        raise ConfigError(f"no folder for durable sessions: {error}; name one with DEEPSTRIKE_HOME") from error


def default_path() -> Path:
    """The SQLite file of the durable sessions of this user."""
    return home() / "sessions.db"


def open_log(
    path: str | os.PathLike[str] | None = None, *, durability: Durability = "os"
) -> FileSessionLog | SqliteSessionLog:
    """The log at `path`, None being the default one: a folder is a `FileSessionLog`, a file a `SqliteSessionLog`.

    Where there is nothing yet, a name that ends in `.db`, `.sqlite` or `.sqlite3` will be a SQLite file, another a
    folder. Nothing is made before the first session is. Raises `ConfigError` for a file that is no database
    and for what is no path, as "".
    """
    place = default_path() if path is None else given_path("path", path)
    if place.is_dir():
        return FileSessionLog(place, durability=durability)
    if place.is_file():
        file = _is_database(place)
        return SqliteSessionLog(place, durability=durability) if file else FileSessionLog(place)
    if place.suffix.lower() in _DATABASE_ENDINGS:
        return SqliteSessionLog(place, durability=durability)
    return FileSessionLog(place, durability=durability)


def _is_database(path: Path) -> bool:
    """Whether the file is one of SQLite, or is empty, which SQLite takes too."""
    with open(path, "rb") as file:
        start = file.read(len(_SQLITE_MAGIC))
    return start in (b"", _SQLITE_MAGIC)


def _data_folder() -> Path:
    if sys.platform == "win32":
        return _named("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return _named("XDG_DATA_HOME", Path.home() / ".local" / "share")


def _named(variable: str, otherwise: Path) -> Path:
    """The folder that a variable names; as XDG has it, one that is not absolute does not count."""
    value = os.environ.get(variable, "")
    return Path(value) if os.path.isabs(value) else otherwise
