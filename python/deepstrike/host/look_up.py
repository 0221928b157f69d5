"""`knowledge(query, top_k)` and `memory(query, top_k)`: what the run's knowledge source and its memory find."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ToolError
from deepstrike.host.steady import NoAnswer, apart
from deepstrike.memory import shown
from deepstrike.tools.failures import failure, failure_of
from deepstrike.tools.results import bounded
from deepstrike.wire.message import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from deepstrike.execution.base import Invocation
    from deepstrike.host.library import Library
    from deepstrike.host.session import Session

# How long a source may take, its preparation included.
LOOK_UP_SECONDS = 60.0
_MANY: Final = 5


async def knowledge(_: Session, library: Library, invocation: Invocation) -> ToolResult:
    """What the knowledge source finds; a source that fails or hangs is an error result, not an empty one.

    Raises nothing but `CancelledError`.
    """
    if library.knowledge is None:
        return failure("tool_error", "this run has no knowledge source any more; go on without it")
    query, top_k = _wanted(invocation)
    return await _found("the knowledge source", library.knowledge.look_up(query, top_k))


async def memory(_: Session, library: Library, invocation: Invocation) -> ToolResult:
    """What the memory finds, with what is not the user's or the agent's own words labelled; else as `knowledge`."""
    if library.memory is None:
        return failure("tool_error", "this run has no memory any more; go on without it")
    query, top_k = _wanted(invocation)
    return await _found("the memory", shown.look_up(library.memory, library.agent_id, query, top_k))


def _wanted(invocation: Invocation) -> tuple[str, int]:
    wanted = json.loads(invocation.args_text)
    return wanted["query"], wanted.get("top_k") or _MANY


async def _found(source: str, work: Coroutine[object, object, str]) -> ToolResult:
    try:
        text = await apart(work, LOOK_UP_SECONDS)
    except ToolError as error:
        return failure_of(error)
    except NoAnswer:
        return failure(
            "timeout",
            f"{source} did not answer within {LOOK_UP_SECONDS:g} s: nothing is known about what it holds; try again "
            "later or go on without it",
        )
    return ToolResult((Text(bounded(text)),))
