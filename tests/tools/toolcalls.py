"""What the tests of this folder share: calling a tool as the host does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.execution.base import Invocation
from deepstrike.tools.context import ToolContext
from deepstrike.tools.decorator import tool
from deepstrike.tools.definition import Tool
from deepstrike.tools.running import run_tool
from deepstrike.wire.message import Ok, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.wire.message import ToolResult

CONTEXT = ToolContext("session", "call-1", "key-1", "agent-1", deps={"db": 1})


class Shown:
    """Keeps what a tool streams."""

    def __init__(self) -> None:
        self.deltas: list[tuple[str, object | None]] = []

    async def show(self, delta: str, chunk: object | None) -> None:
        self.deltas.append((delta, chunk))


def as_tool(function: Callable[..., object]) -> Tool[..., object]:
    return function if isinstance(function, Tool) else tool(function)


def invocation(args_text: str, shown: Shown | None = None, context: ToolContext = CONTEXT) -> Invocation:
    return Invocation("tested", args_text, context, (shown or Shown()).show)


async def called(function: Callable[..., object], args_text: str = "{}", shown: Shown | None = None) -> ToolResult:
    """Check the model's text, then run with the validated one."""
    made = as_tool(function)
    checked = made.check(args_text)
    assert isinstance(checked, Ok), checked
    return await run_tool(made, invocation(args_text if checked.text is None else checked.text, shown))


def text_of(result: ToolResult) -> str:
    """The text of a good result."""
    (part,) = result.parts
    assert result.error_kind == ""
    assert isinstance(part, Text)
    return part.text


def error_of(result: ToolResult) -> tuple[str, str]:
    """Kind and text of an error result."""
    (part,) = result.parts
    assert isinstance(part, Text)
    return result.error_kind, part.text


def schema_of(function: Callable[..., object]) -> dict[str, object]:
    """The tool's schema, parsed."""
    found: dict[str, object] = json.loads(as_tool(function).spec.parameters)
    return found
