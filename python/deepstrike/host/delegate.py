"""`delegate(task, role, tools)`: puts a sub-agent to work and gives its result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ToolError
from deepstrike.tools.failures import failure_of
from deepstrike.wire.message import Err, Text, ToolResult

if TYPE_CHECKING:
    from deepstrike.execution.base import ExecutionPlane, Invocation
    from deepstrike.host.agents import Delegates
    from deepstrike.wire.message import Validated

DELEGATE: Final = "delegate"


def checked(found: Validated, args_text: str, delegates: Delegates, plane: ExecutionPlane) -> Validated:
    """What the schema says of a call's arguments, and then whether there are that role and those tools."""
    if isinstance(found, Err):
        return found
    said = delegates.objection(found.text or args_text, (spec.name for spec in plane.specs()))
    return found if said is None else Err("invalid_arguments", said)


async def delegate(delegates: Delegates, invocation: Invocation) -> ToolResult:
    """What the sub-agent says in the end, or why it did not complete its task."""
    wanted = json.loads(invocation.args_text)
    role, tools = wanted.get("role") or "", wanted.get("tools")
    named = None if tools is None else tuple(tools)
    try:
        text = await invocation.context._hire(delegates.agent(role), role, wanted["task"], named)
    except ToolError as error:
        return failure_of(error)
    return ToolResult((Text(text),))
