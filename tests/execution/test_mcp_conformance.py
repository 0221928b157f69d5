"""The promises that every plane makes, kept by MCP planes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest
from mcp_calls import WebServer, call, rogue, web_server

from deepstrike.testing.plane_conformance import PLANE_CHECKS, Call, PlaneCheck, Sample

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.execution.base import Invocation
    from deepstrike.wire.message import ToolResult


class Telling(McpExecutionPlane):
    """Shows a call's progress as a delta, by which the checks know that it has begun."""

    async def execute(self, invocation: Invocation) -> ToolResult:
        tasks: set[asyncio.Task[None]] = set()

        async def show(text: str) -> None:
            await invocation.show(text, None)

        def emit(text: str) -> None:
            task = asyncio.get_running_loop().create_task(show(text))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        context = msgspec.structs.replace(invocation.context, _emit=emit)
        return await super().execute(msgspec.structs.replace(invocation, context=context))


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


@pytest.mark.parametrize("check", PLANE_CHECKS, ids=str)
async def test_given_a_server_on_pipes_when_its_plane_is_checked_then_it_keeps_the_promise(check: PlaneCheck) -> None:
    async def make() -> Sample:
        plane = Telling(rogue("plain"), timeout_ms=1500, revision="2025-11-25")
        await plane.open()
        return Sample(
            plane,
            works=Call("ok", "{}"),
            invalid=Call("strict", '{"n":"one"}'),
            fails=Call("minus", "{}"),
            hangs=Call("tells", "{}"),
            expires=Call("half", "{}"),
            floods=Call("endless", "{}"),
            ends_calls=True,
        )

    await check.run(make)


# An HTTP client keeps connections for the next call and drops those of cancelled ones: while the plane is open, their
# number may change. That none is left once it is closed has a test of its own.
POOLED = ("a_cancelled_call_leaves_nothing", "many_calls_leave_nothing")


@pytest.mark.parametrize("check", [check for check in PLANE_CHECKS if check.name not in POOLED], ids=str)
async def test_given_a_server_on_the_web_when_its_plane_is_checked_then_it_keeps_the_promise(
    check: PlaneCheck, web: WebServer
) -> None:
    async def make() -> Sample:
        plane = Telling(web.url, timeout_ms=1500)
        await call(plane, "add", '{"x":1,"y":2}')  # by then the subscription to changes of the list stands, too
        return Sample(
            plane,
            works=Call("add", '{"x":1,"y":2}'),
            invalid=Call("add", '{"x":"one","y":2}'),
            fails=Call("fs_read_file", '{"path":"/etc"}'),
            hangs=Call("begin", "{}"),
            expires=Call("begin", "{}"),
            floods=Call("large", '{"size":17000000}'),
            ends_calls=True,
        )

    await check.run(make)
