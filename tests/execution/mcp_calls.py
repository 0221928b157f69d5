"""What the tests of MCP planes share: servers that are started, calls, and what is left of processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deepstrike.execution.base import Invocation
from deepstrike.tools.context import ToolContext
from deepstrike.wire.message import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.wire.message import ToolResult

HERE = Path(__file__).parent
REAL = [sys.executable, str(HERE / "mcp_real_server.py"), "stdio"]


def rogue(mode: str, journal: Path | None = None) -> list[str]:
    """The command of the server that misbehaves."""
    return [
        sys.executable,
        "-I",
        "-S",
        str(HERE / "mcp_rogue_server.py"),
        mode,
        *([] if journal is None else [str(journal)]),
    ]


class WebServer:
    """The official server over HTTP, in a process that can be killed and come back at the same address."""

    def __init__(self) -> None:
        self._port = ""
        self._process = self._start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE / "mcp_real_server.py"), "http", *filter(None, [self._port])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        with process.stdout:
            self._port = process.stdout.readline().strip()
        return process


@contextmanager
def web_server() -> Iterator[WebServer]:
    server = WebServer()
    try:
        yield server
    finally:
        server.kill()


async def discard(_delta: str, _chunk: object | None) -> None:
    return


async def call(
    plane: ExecutionPlane, name: str, args_text: str = "{}", emit: Callable[[str], None] = lambda _: None
) -> ToolResult:
    return await plane.execute(Invocation(name, args_text, ToolContext("s", "c", "k", _emit=emit), discard))


def text_of(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))


async def until(holds: Callable[[], bool]) -> None:
    """Wait, at most ten seconds, until something outside of this process has happened."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within ten seconds")


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children() -> set[int]:
    """The processes that are ours, zombies among them."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == os.getpid():
                found.add(int(entry.name))
    return found
