"""Planes made of planes."""

from __future__ import annotations

import asyncio
import gc
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from deepstrike.errors import ConfigError
from deepstrike.execution.base import ExecutionPlane, Invocation
from deepstrike.execution.composite import CompositePlane
from deepstrike.execution.filtered import FilteredExecutionPlane
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.tools.context import ToolContext
from deepstrike.tools.decorator import tool
from deepstrike.wire.message import Err, Ok, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


def say(word: str) -> Callable[[], str]:
    return lambda: f"{word} said"


def kind(value: object) -> str:
    return type(value).__name__


def local(*names: str) -> LocalExecutionPlane:
    return LocalExecutionPlane().register(*(tool(name=name)(say(name)) for name in names))


async def discard(_delta: str, _chunk: object | None) -> None:
    return


async def execute(plane: ExecutionPlane, name: str) -> ToolResult:
    return await plane.execute(Invocation(name, "{}", ToolContext("s", "c", "k"), discard))


def names(plane: ExecutionPlane) -> list[str]:
    return [spec.name for spec in plane.specs()]


class Opened(LocalExecutionPlane):
    """Counts how often it is closed; may fail at it."""

    def __init__(self, *tools: str, error: Exception | None = None) -> None:
        super().__init__()
        self.register(*(tool(name=name)(say(name)) for name in tools))
        self.closed = 0
        self._error = error

    async def aclose(self) -> None:
        self.closed += 1
        if self._error is not None:
            raise self._error


class Unopened(Opened):
    """Has no tools to tell before it is open."""

    open = False

    def specs(self) -> Any:
        if not self.open:
            raise ConfigError("open it first")
        return super().specs()


# ---- filtered


@pytest.mark.parametrize(
    ("allow", "left"),
    [
        (["read_file"], ["read_file"]),
        (["read_*"], ["read_file", "read_url"]),
        (["*_file", "add"], ["add", "read_file", "write_file"]),
        (["?dd"], ["add"]),
        (["[aw]*"], ["add", "write_file"]),
        (["READ_*"], []),
        ([], []),
        (["*"], ["add", "read_file", "read_url", "write_file"]),
        (("add",), ["add"]),
        ({"add", "read_url"}, ["add", "read_url"]),
        (lambda name: name.endswith("url"), ["read_url"]),
        (lambda name: 1, []),
        (lambda name: name.nothing, []),
    ],
)
def test_given_names_globs_or_a_function_when_filtered_then_these_tools_are_left(allow: Any, left: list[str]) -> None:
    inner = local("write_file", "read_url", "read_file", "add")

    assert names(FilteredExecutionPlane(inner, allow)) == left


async def test_given_a_tool_that_is_not_allowed_when_called_then_it_is_unknown_and_no_error_names_it() -> None:
    plane = FilteredExecutionPlane(local("read", "write"), ["read"])
    said = "there is no tool 'write'; available: read"

    assert plane.validate("read", "{}") == Ok()
    assert await execute(plane, "read") == ToolResult((Text("read said"),))
    assert plane.validate("write", "{}") == Err("unknown_tool", said)
    assert await execute(plane, "write") == ToolResult((Text(said),), "unknown_tool")


async def test_given_a_name_that_no_plane_has_when_it_passes_the_filter_then_hidden_tools_are_not_named() -> None:
    plane = FilteredExecutionPlane(local("read", "write"), ["read*"])
    said = "there is no tool 'reads'; available: read"

    assert plane.validate("reads", "{}") == Err("unknown_tool", said)
    assert await execute(plane, "reads") == ToolResult((Text(said),), "unknown_tool")


def test_given_a_tool_that_comes_later_when_it_fits_the_glob_then_it_is_offered() -> None:
    inner = local("read_a")
    plane = FilteredExecutionPlane(inner, ["read_*"])
    inner.register(tool(name="read_b")(say("b")))

    assert names(plane) == ["read_a", "read_b"]


@pytest.mark.parametrize("allow", ["read", 5, None, [""], [5], [None, "a"]])
def test_given_an_allow_that_is_no_list_of_names_when_filtered_then_the_error_says_so(allow: Any) -> None:
    with pytest.raises(ConfigError, match="allow"):
        FilteredExecutionPlane(local("read"), allow)


async def agree(name: str) -> bool:
    return True


async def agree_often(name: str) -> AsyncIterator[bool]:
    yield True


class Agreeing:
    async def __call__(self, name: str) -> bool:
        return True

    async def ask(self, name: str) -> bool:
        return True


@pytest.mark.parametrize("allow", [agree, agree_often, Agreeing(), Agreeing().ask, partial(agree)], ids=kind)
def test_given_an_async_function_when_filtered_then_it_is_refused(allow: Any) -> None:
    with pytest.raises(ConfigError, match="allow: the function gives something to await"):
        FilteredExecutionPlane(local("read"), allow)


@pytest.mark.filterwarnings("error")
async def test_given_a_function_that_gives_an_awaitable_when_asked_then_nothing_is_allowed_and_the_reason_told() -> (
    None
):
    later = asyncio.get_running_loop().create_future()
    for given in (agree, lambda name: later):
        allow: Any = lambda name, given=given: given(name)  # noqa: E731  (a function that looks like a sync one)
        plane = FilteredExecutionPlane(local("read"), allow)

        with pytest.raises(ConfigError, match="allow: the function gives something to await"):
            plane.specs()
        for name in ("read", "other"):
            refused = plane.validate(name, "{}")
            assert isinstance(refused, Err)
            assert (refused.kind, refused.message.partition(";")[0]) == (
                "unknown_tool",
                "allow: the function gives something to await, and nobody awaits it",
            )
            assert await execute(plane, name) == ToolResult((Text(refused.message),), "unknown_tool")
    gc.collect()


NO_PLANES = [None, 3, "plane", [LocalExecutionPlane()], LocalExecutionPlane, object()]


@pytest.mark.parametrize("wrong", NO_PLANES, ids=kind)
def test_given_what_is_no_plane_when_filtered_or_put_together_then_the_error_says_so(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"^inner must be an execution plane, (such as|not a class: write) Local"):
        FilteredExecutionPlane(wrong, ["*"])
    for planes in ((wrong,), (local("a"), wrong)):
        with pytest.raises(ConfigError, match=r"^each argument of CompositePlane\(one, other\) must be an execution"):
            CompositePlane(*planes)


@pytest.mark.parametrize("wrong", [None, 3, local("b"), "all", [None], [local("b")], LocalExecutionPlane], ids=kind)
def test_given_what_is_no_list_of_its_planes_when_required_then_the_error_says_so(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"^required"):
        CompositePlane(local("a"), required=wrong)


async def test_given_a_plane_that_holds_things_when_the_filter_is_closed_then_it_is_closed_too() -> None:
    inner = Opened("a")

    async with FilteredExecutionPlane(inner, ["*"]) as plane:
        assert names(plane) == ["a"]
    await FilteredExecutionPlane(local("a"), ["*"]).aclose()

    assert inner.closed == 1


# ---- composite


async def test_given_several_planes_when_put_together_then_tools_are_sorted_and_run_where_they_live() -> None:
    plane = CompositePlane(local("zebra", "ant"), FilteredExecutionPlane(local("bee", "cow"), ["bee"]))

    assert names(plane) == ["ant", "bee", "zebra"]
    assert [await execute(plane, name) for name in ("bee", "zebra")] == [
        ToolResult((Text("bee said"),)),
        ToolResult((Text("zebra said"),)),
    ]
    assert plane.validate("ant", "{}") == Ok()


def test_given_planes_that_change_nothing_when_specs_are_asked_then_it_is_the_same_object() -> None:
    one, other = local("a"), local("b")
    plane = CompositePlane(one, other)
    first = plane.specs()

    assert plane.specs() is first
    other.register(tool(name="c")(say("c")))
    assert names(plane) == ["a", "b", "c"]


def test_given_two_tools_of_one_name_when_put_together_then_it_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="two planes offer a tool named 'b'; give one of them another name"):
        CompositePlane(local("a", "b"), local("b", "c"))


def test_given_a_plane_that_stands_there_twice_when_put_together_then_the_error_says_so() -> None:
    plane = local()

    with pytest.raises(ConfigError, match="stands twice"):
        CompositePlane(plane, local("a"), plane)


async def test_given_a_name_that_is_doubled_later_when_specs_are_asked_then_they_are_refused_and_calls_go_on() -> None:
    late = local("b")
    plane = CompositePlane(local("a"), late)
    late.register(tool(name="a")(say("other")))

    with pytest.raises(ConfigError, match="named 'a'"):
        plane.specs()
    assert await execute(plane, "a") == ToolResult((Text("a said"),))


async def test_given_an_unknown_tool_when_called_then_the_tools_of_all_planes_are_named() -> None:
    plane = CompositePlane(local("add"), local("subtract"))
    said = "there is no tool 'substract'; available: subtract, add"

    assert plane.validate("substract", "{}") == Err("unknown_tool", said)
    assert await execute(plane, "substract") == ToolResult((Text(said),), "unknown_tool")


async def test_given_no_planes_at_all_when_put_together_then_there_are_no_tools() -> None:
    async with CompositePlane() as plane:
        assert plane.specs() == ()
        assert (await execute(plane, "x")).parts == (Text("there is no tool 'x'; available: none"),)


async def test_given_a_plane_that_is_not_open_when_another_one_is_called_then_it_works() -> None:
    late = Unopened("late")
    late.open = True
    plane = CompositePlane(local("a"), late)
    late.open = False

    assert await execute(plane, "a") == ToolResult((Text("a said"),))
    assert plane.validate("late", "{}") == Err("unknown_tool", "there is no tool 'late'; available: a")
    with pytest.raises(ConfigError, match="open it first"):
        plane.specs()


async def test_given_planes_that_hold_things_when_closed_then_each_is_closed_although_one_fails() -> None:
    first, broken, last = Opened("a"), Opened("b", error=OSError("stuck")), Opened("c")
    plane = CompositePlane(first, broken, local("d"), last)

    with pytest.raises(OSError, match=re.escape("stuck")):
        await plane.aclose()

    assert (first.closed, broken.closed, last.closed) == (1, 1, 1)
