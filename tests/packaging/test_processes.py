"""Runs in worker processes, forked and spawned, after the parent has run too."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = '''
import asyncio, multiprocessing, sys
from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ScriptedProvider, collect_text, tool
from deepstrike.providers.base import Finish, ToolCall


@tool
def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


def answer(number):
    script = [[ToolCall("call_1", "add", '{"x": %d, "y": 1}' % number), Finish("tool_calls")],
              lambda request: request.turns[-1].parts[0].text]
    runner = RuntimeRunner(RuntimeOptions(
        provider=ScriptedProvider(script), execution_plane=LocalExecutionPlane().register(add)))
    return asyncio.run(collect_text(runner.run_streaming("go")))


if __name__ == "__main__":
    assert answer(1) == "2"
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(answer, range(6)))
    assert answer(2) == "3"
'''


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_given_a_pool_of_processes_when_each_runs_an_agent_then_all_answer(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    done = subprocess.run([sys.executable, program, method], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stdout) == (0, "['1', '2', '3', '4', '5', '6']\n"), done.stderr
