"""What a session is called on disk, whatever its id holds."""

from __future__ import annotations

import re

from deepstrike.errors import ConfigError
from deepstrike.sessions.blob import blob_shelf

_PLAIN = re.compile("[^a-z0-9]+")
_MAX_HINT = 24


def check_id(session_id: object) -> None:
    """Raises `ConfigError` for a session id that is no text."""
    if not isinstance(session_id, str):
        raise ConfigError(f"session_id={session_id!r} is no text: session ids are str")


def file_stem(session_id: str) -> str:
    """A file name without ending for a session: at most 57 characters of `a-z`, `0-9` and `-`.

    A digest makes it the session's alone, also where the file system folds case or normalises unicode; what the id
    begins with stands in front, for people. It is no path, no reserved name, and never begins with a dot.
    """
    hint = _PLAIN.sub("-", session_id[: 4 * _MAX_HINT].lower())[:_MAX_HINT].strip("-")
    digest = blob_shelf(session_id)
    return f"{hint}-{digest}" if hint else digest
