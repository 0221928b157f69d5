"""How an MCP server is reached: a command that speaks on its pipes, or an address."""

from __future__ import annotations

import base64
import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from deepstrike.errors import ConfigError
from deepstrike.secrets import bind_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

INHERITED: Final = (
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP")
    if sys.platform == "win32"
    else ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
)
"""All that a server's process gets of our environment; everything else is declared, or not there."""

_SHORTEST_SECRET: Final = 6
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True, repr=False)
class Command:
    """A server that is started here and speaks on its standard input and output."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Added to `INHERITED`."""
    cwd: str | None

    @property
    def label(self) -> str:
        """The program's name; its arguments may hold secrets."""
        return os.path.basename(self.argv[0]) or self.argv[0]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in a text: the values of the declared environment."""
        return _worth_hiding(self.env.values())

    def environment(self) -> dict[str, str]:
        """The whole environment of the process."""
        return {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(self.env)


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A server behind a URL, spoken to by streamable HTTP."""

    url: str
    headers: Mapping[str, str]

    @property
    def label(self) -> str:
        """The URL without query and fragment, which may hold secrets."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in a text: header values, also behind the word of a scheme, and query values."""
        values = [*self.headers.values(), *(value for _, value in parse_qsl(urlsplit(self.url).query))]
        values += [value.partition(" ")[2] for value in self.headers.values()]
        return _worth_hiding(values)


Endpoint = Command | Address


def read_endpoint(
    server: str | Sequence[str],
    env: Mapping[str, str] | None,
    headers: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
) -> Endpoint:
    """A text with `://` is an address, any other a command line, a list its words. Raises `ConfigError`.

    Values of `env`, `headers` and the URL's query that are named like a secret are bound (`secrets.bind_named`).
    """
    if isinstance(server, str) and "://" in server.partition(" ")[0]:
        if env is not None or cwd is not None:
            raise ConfigError("env= and cwd= are for a server that is started here; a URL takes headers=")
        url, user = _url(server)
        checked = _headers(headers or {})
        bind_named({**checked, **user, **dict(parse_qsl(urlsplit(url).query))})
        return Address(url, {**user, **checked})
    if headers is not None:
        raise ConfigError("headers= are for a URL; a server that is started here gets env={name: value}")
    declared = _environment(env or {})
    bind_named(declared)
    return Command(_argv(server), declared, None if cwd is None else os.fspath(cwd))


def _url(text: str) -> tuple[str, dict[str, str]]:
    """The URL without a user, and the header that says the same: whatever logs a URL does not know what is secret."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ConfigError('an MCP server\'s address is a URL like "https://example.org/mcp"; this one cannot be read')
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return text, {}
    bind_named({"password": unquote(user.partition(":")[2])})
    basic = base64.b64encode(unquote(user).encode()).decode()
    return urlunsplit(parts._replace(netloc=place)), {"Authorization": f"Basic {basic}"}


def _argv(server: str | Sequence[str]) -> tuple[str, ...]:
    words = _words(server) if isinstance(server, str) else tuple(server)
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0]:
        raise ConfigError('an MCP server is a command ("python server.py"), its words as a list, or a URL')
    return words


def _words(line: str) -> tuple[str, ...]:
    """As a shell splits them; on Windows a backslash is part of a path."""
    try:
        if sys.platform == "win32":
            return tuple(word.strip('"') for word in shlex.split(line, posix=False))
        return tuple(shlex.split(line))
    except ValueError as error:
        raise ConfigError(f"the command line cannot be split: {error}; give its words as a list") from None


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str) or "=" in name or not name or "\0" in name + value:
            raise ConfigError(f"env= maps names to texts; {name!r} does not fit")
    return dict(env)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        named = isinstance(name, str) and bool(name) and set(name.lower()) <= _TOKEN
        if not named or not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ConfigError(f"headers= maps header names to printable ASCII texts; {name!r} does not fit")
    return dict(headers)


def _worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Longest first, so that none is left in part; very short ones would hide ordinary words."""
    found = {value for value in values if len(value) >= _SHORTEST_SECRET}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))
