"""The plane of this process."""

from __future__ import annotations

import asyncio
import re
from enum import Enum
from typing import Any

import pytest

from deepstrike.errors import ConfigError
from deepstrike.execution.base import ExecutionPlane, Invocation
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.tools.context import ToolContext
from deepstrike.tools.decorator import tool
from deepstrike.tools.files import read_file
from deepstrike.wire.message import Err, Ok, Text, ToolResult


@tool
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


def subtract(x: int, y: int) -> int:
    """Subtract."""
    return x - y


async def discard(_delta: str, _chunk: object | None) -> None:
    return


async def execute(plane: ExecutionPlane, name: str, args_text: str) -> ToolResult:
    return await plane.execute(Invocation(name, args_text, ToolContext("s", "c", "k"), discard))


def test_given_tools_and_functions_when_registered_then_the_plane_returns_itself_and_sorts_the_specs() -> None:
    plane = LocalExecutionPlane()

    assert plane.register(subtract, add, read_file) is plane
    assert [spec.name for spec in plane.specs()] == ["add", "read_file", "subtract"]
    assert plane.specs() is plane.specs()
    assert plane.unregister("add") is plane
    assert [spec.name for spec in plane.specs()] == ["read_file", "subtract"]


def test_given_a_function_that_names_a_local_class_when_registered_then_it_is_found_as_by_tool() -> None:
    class Color(Enum):
        RED = "r"

    def paint(color: Color) -> str:
        return color.value

    (spec,) = LocalExecutionPlane().register(paint).specs()

    assert spec == tool(paint).spec
    assert '"enum":["r"]' in spec.parameters


def test_given_a_name_that_is_taken_when_registered_then_nothing_changes_and_the_remedy_is_told() -> None:
    plane = LocalExecutionPlane().register(add)

    with pytest.raises(ConfigError, match="there is already a tool named 'add'; unregister it first"):
        plane.register(subtract, add)
    assert [spec.name for spec in plane.specs()] == ["add"]


def test_given_two_long_names_that_differ_at_the_end_when_registered_then_they_stay_different() -> None:
    plane = LocalExecutionPlane().register(tool(name="a" * 70)(subtract), tool(name="a" * 69 + "b")(subtract))

    assert [spec.name for spec in plane.specs()] == ["a" * 70, "a" * 69 + "b"]


def test_given_a_name_that_is_not_there_when_unregistered_then_the_error_lists_what_is() -> None:
    with pytest.raises(ConfigError, match="there is no tool 'ad'; available: add, subtract"):
        LocalExecutionPlane().register(subtract, add).unregister("ad")
    with pytest.raises(ConfigError, match="available: none"):
        LocalExecutionPlane().unregister("ad")


@pytest.mark.parametrize("wrong", [None, 5, []])
def test_given_what_is_no_tool_or_no_name_when_registered_or_unregistered_then_the_error_says_so(wrong: Any) -> None:
    plane = LocalExecutionPlane().register(add)

    with pytest.raises(ConfigError, match=re.escape(f"a tool is made of a function, not of {wrong!r}")):
        plane.register(subtract, wrong)
    with pytest.raises(ConfigError, match=re.escape(f"unregister takes the name of a tool, not {wrong!r}")):
        plane.unregister(wrong)
    assert [spec.name for spec in plane.specs()] == ["add"]


async def test_given_an_unknown_tool_when_called_then_the_nearest_name_stands_first_and_siblings_run() -> None:
    plane = LocalExecutionPlane().register(add, subtract)
    said = "there is no tool 'substract'; available: subtract, add"

    assert plane.validate("substract", "{}") == Err("unknown_tool", said)
    assert await execute(plane, "substract", "{}") == ToolResult((Text(said),), "unknown_tool")
    assert plane.validate("add", '{"x":1,"y":2}') == Ok()
    assert await execute(plane, "add", '{"x":1,"y":2}') == ToolResult((Text("3"),))


def test_given_very_many_tools_when_a_name_is_unknown_then_the_list_is_bounded() -> None:
    plane = LocalExecutionPlane().register(*(tool(name=f"tool_{number:03}")(subtract) for number in range(80)))

    checked = plane.validate("x" * 10_000, "{}")

    assert isinstance(checked, Err)
    assert checked.message.endswith("tool_049 and 30 more")
    assert len(checked.message) < 1000


def test_given_invalid_arguments_when_validated_then_the_parameter_is_named() -> None:
    plane = LocalExecutionPlane().register(add)

    assert plane.validate("add", "{}") == Err("invalid_arguments", "x: missing, but required; y: missing, but required")


def test_given_a_tool_without_schema_when_validated_in_mid_run_then_it_is_an_error_not_an_exception() -> None:
    class Socket: ...

    def broken(s: Socket) -> None: ...

    broken.__annotations__["s"] = Socket
    plane = LocalExecutionPlane().register(broken)

    checked = plane.validate("broken", "{}")

    assert isinstance(checked, Err)
    assert "the type of parameter 's' has no JSON form" in checked.message
    with pytest.raises(ConfigError):
        plane.specs()


async def test_given_a_running_call_when_tools_come_and_go_then_it_finishes() -> None:
    began, release = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        began.set()
        await release.wait()
        return "done"

    plane = LocalExecutionPlane().register(wait)
    running = asyncio.ensure_future(execute(plane, "wait", "{}"))
    await began.wait()
    plane.unregister("wait").register(add)
    release.set()

    assert await running == ToolResult((Text("done"),))
    assert (await execute(plane, "wait", "{}")).error_kind == "unknown_tool"
    assert [spec.name for spec in plane.specs()] == ["add"]
