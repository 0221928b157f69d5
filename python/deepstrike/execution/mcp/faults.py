"""What can go wrong between us and a server."""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError, DeepStrikeError

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE: Final = "mcp_unavailable"


class Unavailable(DeepStrikeError):
    """The server cannot be reached, did not answer in time, or speaks no MCP; the message says which, and its last
    words. The same may succeed later."""

    default_code = CODE
    default_retryable = True


class Lost(Exception):
    """The connection ended under an errand. `begun` is false where the server cannot have seen it."""

    def __init__(self, begun: bool) -> None:
        super().__init__("the connection to the server ended")
        self.begun = begun


class Broken(Exception):
    """One request failed, and others on the connection may go on. `begun` is false where the server cannot have seen
    it."""

    def __init__(self, words: str, begun: bool) -> None:
        super().__init__(words)
        self.begun = begun


class Refused(Exception):
    """The server answered with an error of the protocol; the text is the server's."""


class Malformed(Exception):
    """The server answered with something that is no result of the protocol."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group of them, at any depth; a single one is itself."""
    members = _members(error)
    if not members:
        yield error
    for each in members:
        yield from leaves(each)


def _members(error: BaseException) -> tuple[BaseException, ...]:
    if sys.version_info >= (3, 11):
        return error.exceptions if isinstance(error, builtins.BaseExceptionGroup) else ()
    else:  # noqa: RET505  (mypy takes either branch by the version that it checks for)
        backport = importlib.import_module("exceptiongroup")  # the client's, which raises its groups
        group: type[BaseException] = backport.BaseExceptionGroup
        return tuple(error.exceptions) if isinstance(error, group) else ()  # type: ignore[attr-defined]


def lacking(problem: str) -> ConfigError:
    """The official client is not there, or not one that we can use."""
    return ConfigError(f"{problem}; McpExecutionPlane needs the official client: pip install 'deepstrike[mcp]'")
