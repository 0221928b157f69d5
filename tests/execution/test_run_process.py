"""Programs that a tool of one's own starts: they end with its call, however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp_calls import until

from deepstrike import LocalExecutionPlane, ToolError, tool
from deepstrike.errors import ConfigError
from deepstrike.execution.base import Invocation
from deepstrike.execution.processes import Finished, run_process
from deepstrike.testing import ManualClock
from deepstrike.tools.context import ToolContext

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the helper is for Linux")


def with_mark(mark: str) -> list[int]:
    """Processes whose command line has the word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


async def discard(_delta: str, _chunk: object | None) -> None:
    return


FAMILY = "(setsid sh -c 'trap : TERM; sleep 600; : {mark}' &); echo begun; sleep 600; : {mark}"


@pytest.mark.parametrize(
    ("command", "finished"),
    [
        ("echo out; echo err >&2", Finished("out\nerr\n", 0)),
        ("exit 3", Finished("", 3)),
        ("kill -9 $$", Finished("", None, "SIGKILL")),
        ("cat; echo $WORD; pwd", Finished("given\n/\n", 0)),
    ],
)
async def test_given_a_program_when_it_ends_then_its_output_and_its_end_are_known(
    command: str, finished: Finished
) -> None:
    shown: list[str] = []
    found = await run_process(
        "sh", "-c", command, cwd="/", env={"WORD": "given", "PATH": "/usr/bin:/bin"}, show=shown.append
    )

    assert (found, "".join(shown), found.ok) == (finished, finished.output, finished.exit_code == 0)


async def test_given_a_program_with_a_family_when_its_time_is_over_then_all_are_gone() -> None:
    mark = f"mark-late-{os.getpid()}"
    begun = asyncio.Event()
    with ManualClock() as clock:
        work = run_process("sh", "-c", FAMILY.format(mark=mark), timeout_ms=5_000, show=lambda _: begun.set())
        task = asyncio.ensure_future(work)
        await begun.wait()
        assert len(with_mark(mark)) > 1
        await clock.advance(5)
        found = await task

    assert (found, with_mark(mark)) == (Finished("begun\n", None, timed_out=True), [])


async def test_given_a_tool_that_runs_a_program_when_the_tools_time_is_over_then_all_that_it_started_is_gone() -> None:
    mark = f"mark-tool-{os.getpid()}"

    @tool(timeout_ms=5_000)
    async def build(context: ToolContext) -> str:
        """Build it."""
        return (await run_process("sh", "-c", FAMILY.format(mark=mark), show=context.emit)).output

    begun = asyncio.Event()
    context = ToolContext("s", "c", "k", _emit=lambda _: begun.set())
    with ManualClock() as clock:
        plane = LocalExecutionPlane().register(build)
        task = asyncio.ensure_future(plane.execute(Invocation("build", "{}", context, discard)))
        await begun.wait()
        await clock.advance(5)
        result = await task

    assert (result.error_kind, with_mark(mark)) == ("timeout", [])


async def test_given_a_host_that_is_killed_when_a_program_runs_then_it_ends_too() -> None:
    mark = f"mark-killed-{os.getpid()}"
    code = (
        "import asyncio\nfrom deepstrike.execution.processes import run_process\n"
        f"asyncio.run(run_process('sh', '-c', {FAMILY.format(mark=mark)!r}, show=lambda text: print(text, flush=True)))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"begun\n"
        host.send_signal(signal.SIGKILL)

    await until(lambda: with_mark(mark) == [])


@pytest.mark.parametrize(
    ("argv", "options", "said"),
    [
        (("no-such-program-here",), {}, "there is no program 'no-such-program-here'"),
        (("true",), {"cwd": "/no/such/folder"}, "there is no folder '/no/such/folder'"),
    ],
)
async def test_given_a_program_that_cannot_be_started_when_run_then_the_model_can_be_told(
    argv: tuple[str, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        await run_process(*argv, **options)


@pytest.mark.parametrize("argv", [(), ("a\0b",)])
async def test_given_no_command_line_when_run_then_the_error_shows_one(argv: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="as in run_process"):
        await run_process(*argv)
