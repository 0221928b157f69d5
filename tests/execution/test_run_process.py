"""Programs that a tool of one's own starts: they end with its call, however it ends."""

from __future__ import annotations

import asyncio
import math
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
        (f"kill -{signal.SIGRTMIN} $$", Finished("", None, "SIGRTMIN")),
        (f"kill -{signal.SIGRTMIN + 1} $$", Finished("", None, "SIGRTMIN+1")),
        (f"kill -{signal.SIGRTMAX} $$", Finished("", None, "SIGRTMAX")),
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
        await until(lambda: len(with_mark(mark)) > 1)
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


class OddPath(os.PathLike[str]):
    """A path that gives something else, or raises it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __fspath__(self) -> str:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value  # type: ignore[no-any-return]


NO_TEXTS = [
    3,
    1.5,
    None,
    True,
    b"a",
    "a\0b",
    "\ud800",
    ["a"],
    OddPath(3),
    OddPath(b"a"),
    OddPath("\0"),
    OddPath(OSError()),
]


@pytest.mark.parametrize("argv", [(), ("",), *[(each,) for each in NO_TEXTS], *[("echo", each) for each in NO_TEXTS]])
async def test_given_no_command_line_when_run_then_the_error_shows_one(argv: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError, match="as in run_process"):
        await run_process(*argv)


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("cwd", ["", *(each for each in NO_TEXTS if each is not None)]),
        ("env", [3, True, "A=b", b"A", ["A"], {"A": 1}, {1: "a"}, {"": "a"}, {"A=": "a"}, {"A\0": "a"}, {"A": "a\0"}]),
        ("env", [{"A": b"a"}, {"A": None}, {"A": "\ud800"}, {"\ud800": "a"}, [("A", "a")]]),
        ("timeout_ms", ["5", b"5", 0, -1, 1.5, True, math.nan, math.inf, 2**53, 10**5000, [5]]),
        ("show", [3, "print", [print]]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_given_a_wrong_argument_when_run_then_nothing_is_started_and_the_error_names_it(
    word: str, values: list[Any], tmp_path: Path
) -> None:
    for value in values:
        with pytest.raises(ConfigError, match=f"^{word}"):
            await run_process("touch", tmp_path / "started", **{word: value})

    assert list(tmp_path.iterdir()) == []


async def test_given_names_that_are_no_utf8_when_run_then_they_arrive_as_they_are(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / name).mkdir()

    found = await run_process("sh", "-c", 'echo "$1$WORD" > "$1"', "sh", name, cwd=tmp_path / name, env={"WORD": name})

    assert (found.ok, (tmp_path / name / name).read_bytes()) == (True, b"caf\xe9caf\xe9\n")


async def test_given_a_working_directory_that_is_gone_when_run_then_the_model_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(ToolError, match="the folder that this process works in is gone"):
        await run_process("true")
    assert (await run_process("true", cwd=tmp_path)).ok
