"""Failures as results: what went wrong, in words for the model and a kind for programs."""

from __future__ import annotations

import builtins
import sys
from typing import Final

from deepstrike.errors import ToolError
from deepstrike.tools.results import bounded
from deepstrike.wire.message import Text, ToolResult

MAX_NESTED: Final = 5
"""Of an exception group so many members are named."""


def failure(kind: str, message: str) -> ToolResult:
    """An error result."""
    return ToolResult(parts=(Text(bounded(message)),), error_kind=kind)


def failure_of(error: BaseException) -> ToolResult:
    """What an exception says: `TypeName: message`, or the type alone; a `ToolError` its own words and hint."""
    if isinstance(error, ToolError):
        return failure("tool_error", f"{error.message}\nHint: {error.hint}" if error.hint else error.message)
    return failure("exception", _told(error))


def _told(error: BaseException) -> str:
    name = type(error).__name__
    if sys.version_info >= (3, 11) and isinstance(error, builtins.BaseExceptionGroup):
        members = "; ".join(_told(each) for each in error.exceptions[:MAX_NESTED])
        more = len(error.exceptions) - MAX_NESTED
        return f"{name}: {members}" + (f"; and {more} more" if more > 0 else "")
    try:
        message = str(error)
    except Exception:  # an exception whose __str__ fails must not hide itself
        return name
    return f"{name}: {message}" if message else name
