"""What a caller gives of a server is checked when it is given: later, it would be an error of some library."""

from __future__ import annotations

import importlib
import ipaddress
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from deepstrike.errors import ConfigError
from deepstrike.execution.mcp.faults import lacking

if TYPE_CHECKING:
    from collections.abc import Callable
    from urllib.parse import SplitResult

LONGEST_URL: Final = 65_536
"""Characters; the client takes no more."""
OURS: Final = frozenset(
    ["connection", "content-length", "keep-alive", "mcp-session-id", "te", "trailer", "transfer-encoding", "upgrade"]
)
"""Headers that belong to a connection or a session, and not to its user."""

_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_HOST: Final = re.compile(r"[a-z0-9_.-]+", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d+(\.\d+){3}", re.ASCII)
_ALIKE: Final = re.compile(r"https?:", re.IGNORECASE)
_SERVER: Final = 'server= is a command ("python server.py"), its words as a list, or a URL ("https://example.org/mcp")'


def is_address(server: object) -> bool:
    """Whether it is meant as a URL."""
    first = server.split(maxsplit=1)[:1] if isinstance(server, str) else []
    return any("://" in word or _ALIKE.match(word) for word in first)


def checked_url(text: str) -> SplitResult:
    """The parts of a URL. Raises `ConfigError`, which does not repeat what may hold a secret."""
    if len(text) > LONGEST_URL:
        raise _no_url(f"it is longer than {LONGEST_URL} characters")
    if any(each.isspace() or not each.isprintable() for each in text):
        raise _no_url("it has white space or other characters that cannot be seen")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _no_url("its host or its port cannot be read") from None
    if parts.scheme not in ("http", "https"):
        raise _no_url(f"it begins with {parts.scheme[:20]!r} and not with http:// or https://")
    if not parts.hostname or not _is_host(parts.hostname, "[" in parts.netloc):
        raise _no_url("it names no host that there can be")
    if port == 0:
        raise _no_url("its port is 0")
    return parts


def _no_url(why: str) -> ConfigError:
    return ConfigError(f'server= is no URL like "https://example.org/mcp": {why}')


def _is_host(host: str, bracketed: bool) -> bool:
    try:
        if bracketed or _DIGITS.fullmatch(host):
            ipaddress.ip_address(host)
            return True
        plain = host.encode("idna") if host.isascii() else _international(host)
        return _HOST.fullmatch(plain.decode()) is not None
    except ValueError:
        return False


def _international(host: str) -> bytes:
    """By the package that the client reads URLs with. Raises `ValueError`, and `ConfigError` where it is not there."""
    try:
        encode: Callable[[str], bytes] = importlib.import_module("idna").encode
    except ImportError:
        raise lacking("the package idna is not installed") from None
    return encode(host.lower())


def checked_argv(server: object) -> tuple[str, ...]:
    """The words of a command. Raises `ConfigError`."""
    if isinstance(server, str):
        words: tuple[object, ...] = _words(server)
    elif isinstance(server, Sequence) and not isinstance(server, bytes | bytearray | memoryview):
        words = tuple(server)
    else:
        raise ConfigError(f"{_SERVER}, not {type(server).__name__}")
    texts = tuple(word for word in words if isinstance(word, str))
    if len(texts) < len(words):
        wrong = next(word for word in words if not isinstance(word, str))
        raise ConfigError(f"server=[…] holds {type(wrong).__name__}; its words are texts: str(…) makes one")
    if not texts or not texts[0].strip():
        raise ConfigError(f"{_SERVER}; this one names no program")
    if is_address(texts[0]):
        raise ConfigError("server=[…] begins with an address; give a URL by itself, and what goes with it as headers=")
    if not all(map(_passes, texts)):
        raise ConfigError("server= has a word that no program can be given: with a NUL, or no text of Unicode")
    return texts


def _words(line: str) -> tuple[str, ...]:
    """As a shell splits them; on Windows a backslash is part of a path."""
    try:
        if sys.platform == "win32":
            return tuple(word.strip('"') for word in shlex.split(line, posix=False))
        return tuple(shlex.split(line))
    except ValueError as error:
        raise ConfigError(f"the command line cannot be split: {error}; give its words as a list") from None


def checked_cwd(cwd: object) -> str | None:
    """Raises `ConfigError`; whether the directory is there shows when the server is started."""
    if cwd is None:
        return None
    path = os.fspath(cwd) if isinstance(cwd, str | os.PathLike) else None
    if not isinstance(path, str) or not path or not _passes(path):
        raise ConfigError("cwd= is the path of a directory, as a text or a Path; leave it out for the current one")
    return path


def checked_env(env: object) -> dict[str, str]:
    """Raises `ConfigError`, which names the variable and not its value."""
    checked: dict[str, str] = {}
    for name, value in _entries(env, 'env= maps names to texts, as in env={"TOKEN": "…"}'):
        if not isinstance(name, str) or not name or "=" in name or not _passes(name):
            raise ConfigError(f'env= has {_shown(name)} for a name; one is a text without "=" and NUL')
        if not isinstance(value, str) or not _passes(value):
            raise ConfigError(f"env= maps names to texts without NUL; the value of {_shown(name)} does not fit")
        checked[name] = value
    return checked


def checked_headers(headers: object) -> dict[str, str]:
    """Raises `ConfigError`, which names the header and not its value."""
    checked: dict[str, str] = {}
    for name, value in _entries(headers, 'headers= maps header names to texts, as in headers={"X-Team": "…"}'):
        if not isinstance(name, str) or not name or not set(name.lower()) <= _TOKEN:
            raise ConfigError(f"headers= has {_shown(name)} for a name; one is of ASCII letters, digits and dashes")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable() or value != value.strip():
            raise ConfigError(
                f"headers= maps header names to printable ASCII texts without space around them; the value of "
                f"{_shown(name)} does not fit: percent-encode it, or give base64"
            )
        if name.lower() in OURS:
            raise ConfigError(f"headers= has {_shown(name)}, which the connection sets by itself: leave it out")
        if name.lower() in map(str.lower, checked):
            raise ConfigError(f"headers= has {_shown(name)} twice, as case does not count: leave one out")
        checked[name] = value
    return checked


def _entries(given: object, what: str) -> list[tuple[object, object]]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{what}, not {type(given).__name__}")
    return list(given.items())


def _passes(text: str) -> bool:
    """Whether the system takes it as a word, a path or a variable."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _shown(name: object) -> str:
    return repr(name)[:100]
