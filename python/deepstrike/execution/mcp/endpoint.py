"""How an MCP server is reached: a command that speaks on its pipes, or an address."""

from __future__ import annotations

import base64
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from deepstrike.errors import ConfigError
from deepstrike.execution.mcp.checks import (
    checked_argv,
    checked_cwd,
    checked_env,
    checked_headers,
    checked_url,
    is_address,
)
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
    """A text that begins like `http:`, or has `://` in its first word, is an address, any other a command line, a list
    its words. Raises `ConfigError`.

    Values of `env`, `headers` and the URL's query that are named like a secret are bound (`secrets.bind_named`).
    """
    if isinstance(server, str) and is_address(server):
        if env is not None or cwd is not None:
            raise ConfigError("env= and cwd= are for a server that is started here; a URL takes headers=")
        url, user = _url(server)
        checked = checked_headers({} if headers is None else headers)
        bind_named({**checked, **user, **dict(parse_qsl(urlsplit(url).query))})
        return Address(url, {**user, **checked})
    if headers is not None:
        raise ConfigError("headers= are for a URL; a server that is started here gets env={name: value}")
    declared = checked_env({} if env is None else env)
    bind_named(declared)
    return Command(checked_argv(server), declared, checked_cwd(cwd))


def _url(text: str) -> tuple[str, dict[str, str]]:
    """The URL without a user, and the header that says the same: whatever logs a URL does not know what is secret."""
    parts = checked_url(text)
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return text, {}
    bind_named({"password": unquote(user.partition(":")[2])})
    basic = base64.b64encode(unquote(user).encode()).decode()
    return urlunsplit(parts._replace(netloc=place)), {"Authorization": f"Basic {basic}"}


def _worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Longest first, so that none is left in part; very short ones would hide ordinary words."""
    found = {value for value in values if len(value) >= _SHORTEST_SECRET}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))
