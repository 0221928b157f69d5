"""All our planes keep the promises of a plane, and the suite finds planes that do not."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from deepstrike.execution.composite import CompositePlane
from deepstrike.execution.confine.landlock import landlock_abi
from deepstrike.execution.filtered import FilteredExecutionPlane
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.execution.sandbox import SandboxExecutionPlane
from deepstrike.testing.plane_conformance import PLANE_CHECKS, Call, PlaneCheck, Sample, check_plane
from deepstrike.tools.decorator import tool
from deepstrike.wire.message import Ok, Text, ToolResult

if TYPE_CHECKING:
    from deepstrike.execution.base import Invocation
    from deepstrike.wire.message import ToolSpec, Validated


async def add(x: int, y: int) -> int:
    return x + y


async def fail() -> None:
    raise ValueError("broken")


async def wait() -> AsyncIterator[str]:
    yield "waiting"
    await asyncio.Event().wait()


@tool(timeout_ms=50)
async def expire() -> None:
    await asyncio.Event().wait()


def flood() -> str:
    return "x" * 20_000_000


def registered(plane: LocalExecutionPlane) -> LocalExecutionPlane:
    return plane.register(add, fail, wait, expire, flood)


CALLS: dict[str, Any] = {
    "works": Call("add", '{"x": "1", "y": 2}'),
    "invalid": Call("add", '{"x": "one"}'),
    "fails": Call("fail", "{}"),
    "hangs": Call("wait", "{}"),
    "expires": Call("expire", "{}"),
    "floods": Call("flood", "{}"),
}


async def make_local() -> Sample:
    return Sample(registered(LocalExecutionPlane()), **CALLS)


async def make_filtered() -> Sample:
    return Sample(FilteredExecutionPlane(registered(LocalExecutionPlane()), ["*"]), **CALLS)


async def make_composite() -> Sample:
    others = LocalExecutionPlane().register(tool(name="zz")(lambda: "z"))
    return Sample(CompositePlane(others, registered(LocalExecutionPlane())), **CALLS)


async def make_sandbox() -> Sample:
    return Sample(
        SandboxExecutionPlane(timeout_ms=5_000),
        works=Call("run_command", '{"command": "echo $((1 + 2))"}'),
        invalid=Call("run_command", "{}"),
        fails=Call("run_python", '{"code": "raise SystemExit(3)"}'),
        hangs=Call("run_command", '{"command": "echo waiting; sleep 600"}'),
        expires=Call("run_command", '{"command": "sleep 600"}'),
        floods=Call("run_command", '{"command": "head -c 20000000 /dev/zero"}'),
        ends_calls=True,
    )


NO_SANDBOX = pytest.mark.skipif(
    sys.platform != "linux" or landlock_abi() < 3, reason="this kernel has no Landlock, so nothing would run"
)
MAKERS = [
    make_local,
    make_filtered,
    make_composite,
    pytest.param(make_sandbox, marks=NO_SANDBOX),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("check", PLANE_CHECKS, ids=str)
async def test_given_a_plane_of_ours_when_checked_then_it_holds(check: PlaneCheck, make: Any) -> None:
    await check.run(make)


class RaisesForTools(LocalExecutionPlane):
    async def execute(self, invocation: Invocation) -> ToolResult:
        result = await super().execute(invocation)
        if result.error_kind == "exception":
            raise RuntimeError("the tool failed")
        return result


class RaisesForNames(LocalExecutionPlane):
    def validate(self, name: str, args_text: str) -> Validated:
        return self._tools[name].check(args_text)


class ChecksNothing(LocalExecutionPlane):
    def validate(self, name: str, args_text: str) -> Validated:
        checked = super().validate(name, args_text)
        return checked if name not in self._tools else Ok()


class ListsAsTheyCame(LocalExecutionPlane):
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(made.spec for made in self._tools.values())


class OneAtATime(LocalExecutionPlane):
    def __init__(self) -> None:
        super().__init__()
        self._turn = asyncio.Lock()

    async def execute(self, invocation: Invocation) -> ToolResult:
        async with self._turn:
            return await super().execute(invocation)


class LeavesTasks(LocalExecutionPlane):
    async def execute(self, invocation: Invocation) -> ToolResult:
        return await asyncio.shield(asyncio.ensure_future(super().execute(invocation)))


class KeepsFilesOpen(LocalExecutionPlane):
    kept: ClassVar[list[int]] = []

    async def execute(self, invocation: Invocation) -> ToolResult:
        self.kept.append(os.open(os.devnull, os.O_RDONLY))
        return await super().execute(invocation)


class MixesResults(LocalExecutionPlane):
    calls = 0

    async def execute(self, invocation: Invocation) -> ToolResult:
        self.calls += 1
        return ToolResult((Text(str(self.calls)),))


@pytest.mark.parametrize(
    ("broken", "found_by"),
    [
        (RaisesForTools, ["a_failure_is_a_result_with_a_kind_and_words"]),
        (RaisesForNames, ["validate_never_raises", "an_unknown_tool_is_refused_and_the_error_names_what_is_there"]),
        (ChecksNothing, ["arguments_that_do_not_fit_are_refused"]),
        (ListsAsTheyCame, ["specs_are_sorted_by_name_and_unique"]),
        (OneAtATime, ["a_call_that_waits_does_not_keep_others_waiting"]),
        (LeavesTasks, ["a_cancelled_call_leaves_nothing"]),
        (KeepsFilesOpen, ["many_calls_leave_nothing"]),
        (MixesResults, ["calls_run_side_by_side_and_do_not_mix"]),
    ],
)
async def test_given_a_broken_plane_when_checked_then_the_checks_that_found_it_are_named(
    broken: type[LocalExecutionPlane], found_by: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepstrike.testing.plane_conformance.PATIENCE_SECONDS", 1.0)

    async def make() -> Sample:
        return Sample(registered(broken()), **{name: call for name, call in CALLS.items() if name != "floods"})

    with pytest.raises(AssertionError) as found:
        await check_plane(make)
    named = re.findall(r"^  (\w+): ", str(found.value), re.MULTILINE)
    assert set(found_by) <= set(named)
    while KeepsFilesOpen.kept:
        os.close(KeepsFilesOpen.kept.pop())
    mine = asyncio.all_tasks() - {asyncio.current_task()}
    for task in mine:
        task.cancel()
    await asyncio.gather(*mine, return_exceptions=True)
