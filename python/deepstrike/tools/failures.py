"""Failures as results: what went wrong, in words for the model and a kind for programs."""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ToolError
from deepstrike.tools.results import bounded
from deepstrike.wire.message import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NESTED: Final = 5
"""Of an exception group so many members are named, and so many groups within each other."""


def failure(kind: str, message: str) -> ToolResult:
    """An error result."""
    return ToolResult(parts=(Text(bounded(message)),), error_kind=kind)


def failure_of(error: BaseException) -> ToolResult:
    """What an exception says: `TypeName: message`, or the type alone; a `ToolError` its own words and hint."""
    if isinstance(error, ToolError):
        message = _words(lambda: error.message) or type(error).__name__
        hint = _words(lambda: error.hint or "")
        return failure("tool_error", f"{message}\nHint: {hint}" if hint else message)
    return failure("exception", _told(error, MAX_NESTED))


def _told(error: BaseException, depth: int) -> str:
    name = type(error).__name__
    if sys.version_info >= (3, 11) and isinstance(error, builtins.BaseExceptionGroup) and depth:
        members = "; ".join(_told(each, depth - 1) for each in error.exceptions[:MAX_NESTED])
        more = len(error.exceptions) - MAX_NESTED
        return f"{name}: {members}" + (f"; and {more} more" if more > 0 else "")
    message = _words(lambda: error)
    return f"{name}: {message}" if message else name


def _words(of: Callable[[], object]) -> str:
    """What is given as text; nothing where that fails: an exception whose `__str__` fails must not hide itself."""
    try:
        return str(of())
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""
