"""The place of a log as somebody named it, checked before anything is made there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from deepstrike.errors import ConfigError

_LONGEST_ENDING: Final = "-journal"
"""What SQLite and the logs put behind a name is no longer than this."""


def given_path(name: str, path: object) -> Path:
    """`path` as an absolute one, `~` being the user's folder; a later chdir does not move it.

    Raises `ConfigError`, which calls it `name`, for what is neither a text nor a path of one, is empty, holds a zero
    byte, or is longer than the file system takes. Nothing is made.
    """
    try:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    except TypeError:
        text = None
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{name}={path!r} names no place: give the path of a folder or file")
    try:
        place = Path(os.path.abspath(Path(text).expanduser()))
        if not os.path.lexists(place):
            os.stat(f"{place}{_LONGEST_ENDING}")  # nothing is there as a rule; asked for what the system says of it
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ConfigError(f"{name}={_short(text)} is longer than the file system takes: shorten it") from None
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"{name}={_short(text)} is no path: {error}") from None
    return place


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}…")
