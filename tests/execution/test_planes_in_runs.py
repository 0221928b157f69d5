"""Planes whose tools are known once they are open, in runs."""

from __future__ import annotations

import pytest

from deepstrike import (
    CompositePlane,
    DoneEvent,
    ErrorEvent,
    FilteredExecutionPlane,
    LocalExecutionPlane,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    ToolResultEvent,
    UsageEvent,
    tool,
)
from deepstrike.errors import ConfigError, RunFailed
from deepstrike.execution.base import ExecutionPlane, Invocation
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.stream import NoticeEvent
from deepstrike.wire.message import ToolResult, ToolSpec, Validated


@tool
def near(x: int) -> int:
    """Doubles."""
    return 2 * x


class Late:
    """A plane that has to be opened, and counts how often it was opened and closed."""

    def __init__(self) -> None:
        self.inner = LocalExecutionPlane().register(tool(name="far")(lambda x: int(x) + 1))
        self.opened = 0
        self.closed = 0

    async def open(self) -> None:
        self.opened += 1

    async def aclose(self) -> None:
        self.closed += 1

    def specs(self) -> tuple[ToolSpec, ...]:
        if not self.opened:
            raise ConfigError("not open")
        return self.inner.specs()

    def validate(self, name: str, args_text: str) -> Validated:
        return self.inner.validate(name, args_text)

    async def execute(self, invocation: Invocation) -> ToolResult:
        return await self.inner.execute(invocation)


def model(*calls: str) -> ScriptedProvider:
    return ScriptedProvider(
        [[*(ToolCall(f"c{at}", name, '{"x": 1}') for at, name in enumerate(calls)), Finish("tool_calls")], "done"],
        repeat_last=True,
    )


@pytest.mark.parametrize("wrap", [lambda late: late, lambda late: FilteredExecutionPlane(late, ["f*"])])
async def test_given_a_plane_that_is_not_open_when_a_run_begins_then_it_is_opened_and_later_closed(
    wrap: object,
) -> None:
    late = Late()
    assert callable(wrap)
    async with RuntimeRunner(RuntimeOptions(provider=(provider := model("far")), execution_plane=wrap(late))) as runner:
        run = runner.run("go")
        assert late.opened == 0
        assert (await run).text == "done"

    assert [spec.name for spec in provider.requests[0].tools] == ["far", "recall", "update_plan"]
    assert (late.opened, late.closed) == (1, 1)


async def test_given_planes_side_by_side_when_one_opens_late_then_both_serve_the_run() -> None:
    late = Late()
    plane: ExecutionPlane = CompositePlane(LocalExecutionPlane().register(near), late)
    runner = RuntimeRunner(RuntimeOptions(provider=(provider := model("far", "near")), execution_plane=plane))

    assert (await runner.run("go")).text == "done"
    await runner.run("again")

    assert [spec.name for spec in provider.requests[0].tools] == ["far", "near", "recall", "update_plan"]
    assert late.opened == 2


async def test_given_a_late_plane_that_offers_the_same_name_when_a_run_begins_then_it_says_so() -> None:
    twice = LocalExecutionPlane().register(tool(name="far")(lambda x: x))
    runner = RuntimeRunner(RuntimeOptions(provider=model("far"), execution_plane=CompositePlane(twice, Late())))

    with pytest.raises(RunFailed, match="two planes offer a tool named 'far'") as failed:
        await runner.run("go")

    assert failed.value.code == "config"


class Broken(Late):
    """Cannot be opened, until it is mended."""

    def __init__(self) -> None:
        super().__init__()
        self.mended = False

    async def open(self) -> None:
        if not self.mended:
            raise OSError("the cable is out")
        await super().open()

    def __repr__(self) -> str:
        return "Broken()"


async def test_given_a_plane_whose_opening_raises_when_a_run_begins_then_it_ends_with_an_error_and_done() -> None:
    runner = RuntimeRunner(RuntimeOptions(provider=model("far"), execution_plane=Broken()))

    events = [event async for event in runner.run_streaming("go", session_id="s")]

    said = "the execution plane could not be opened: OSError: the cable is out; the goal was not begun and nothing is "
    assert events == [
        ErrorEvent(said + "recorded: run it again when that is mended", "plane", False),
        DoneEvent(0, 0, "error", UsageEvent(0, 0), "s"),
    ]


async def test_given_a_plane_of_several_that_was_down_when_it_is_mended_then_the_next_run_has_its_tools() -> None:
    broken = Broken()
    plane = CompositePlane(LocalExecutionPlane().register(near), FilteredExecutionPlane(broken, ["far"]))
    runner = RuntimeRunner(RuntimeOptions(provider=(provider := model("near")), execution_plane=plane))

    notice, *_ = [event async for event in runner.run_streaming("go")]
    broken.mended = True
    first, *_ = [event async for event in runner.run_streaming("again")]

    assert isinstance(notice, NoticeEvent)
    assert notice.message.endswith("are missing: OSError: the cable is out")
    assert not isinstance(first, NoticeEvent)
    assert [spec.name for spec in provider.requests[0].tools] == ["near", "recall", "update_plan"]
    assert [spec.name for spec in provider.requests[-1].tools] == ["far", "near", "recall", "update_plan"]


def test_given_a_required_plane_that_is_not_there_when_put_together_then_the_error_says_so() -> None:
    with pytest.raises(ConfigError, match="required= names a plane that is not in this CompositePlane"):
        CompositePlane(LocalExecutionPlane(), required=[LocalExecutionPlane()])


async def test_given_a_misspelt_tool_of_the_runtimes_own_when_called_then_the_nearest_of_them_comes_first() -> None:
    called = model("update_plam", "nears")
    runner = RuntimeRunner(RuntimeOptions(provider=called, execution_plane=LocalExecutionPlane().register(near)))
    events = [event async for event in runner.run_streaming("go")]
    assert [(event.error_kind, event.content) for event in events if isinstance(event, ToolResultEvent)] == [
        ("unknown_tool", "there is no tool 'update_plam'; available: near; the runtime's own: update_plan, recall"),
        ("unknown_tool", "there is no tool 'nears'; available: near; the runtime's own: recall, update_plan"),
    ]
