"""Text that may cross a boundary: every string here can be encoded as UTF-8."""

from __future__ import annotations

import os
import re

from deepstrike.errors import ConfigError

# One escape of a JSON string at a time, a surrogate pair as one; so a backslash that is itself escaped is seen as such.
_ESCAPE = re.compile(r"\\(?:u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined to the character they mean and lone surrogates replaced by U+FFFD.

    Text without surrogates, nearly all, is returned as it is: checking it costs one pass at memory speed, ASCII none.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def distinct(text: str) -> str:
    """`text` as `well_formed`; one that is changed by that is followed by its digest, so no two become the same."""
    formed = well_formed(text)
    if formed == text:
        return text
    from hashlib import blake2b  # loads OpenSSL: hardly any text has a surrogate

    return f"{formed}-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def well_formed_json(text: str) -> str:
    """JSON text as `well_formed`, in which also no lone surrogate is left as an escape (`\\ud83d`)."""
    text = well_formed(text)
    if _SURROGATE.search(text) is None:
        return text
    return _ESCAPE.sub(lambda found: "\ufffd" if _SURROGATE.fullmatch(found.group()) else found.group(), text)


def printable(text: str) -> str:
    """`text` on one line, with what would forge another, steer a terminal or cannot be written as its escape."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def path_text(name: str, path: object) -> str:
    """A path that somebody gave as `name`, its `~` replaced by the user's folder.

    Raises `ConfigError` for what is neither a text nor a path of one, is empty, holds a zero byte or no text.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text or well_formed(text) != text:
        raise ConfigError(f"{name}={path!r:.200} is no path: give that of a file or folder, as a text or a Path")
    return os.path.expanduser(text)
