"""What `demo`, `run` and `chat` do."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from deepstrike.cli import exits
from deepstrike.cli.choice import choose
from deepstrike.cli.load import plane_of
from deepstrike.cli.probe import local_servers
from deepstrike.cli.pursue import Loop, pursue
from deepstrike.cli.show import show_for
from deepstrike.cli.signals import leave_without_waiting
from deepstrike.errors import ConfigError
from deepstrike.options import RuntimeOptions
from deepstrike.runner import RuntimeRunner

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Setup:
    """The options that `run` and `chat` share; `timeout` is in seconds."""

    model: str | None
    base_url: str | None
    tools: tuple[str, ...]
    system: str
    max_turns: int
    timeout: float | None


def run_goal(setup: Setup, goal: str, *, as_json: bool) -> int:
    """Pursue one goal; the exit code is that of its status."""
    runner = _runner(setup)
    with Loop() as loop:
        try:
            done = loop.run(pursue(runner, goal, show_for(as_json=as_json)))
        finally:
            loop.run(runner.aclose())
    return _ended(loop, exits.BY_STATUS[done.status])


def run_chat(setup: Setup, *, as_json: bool) -> int:
    """Pursue a goal for each line of the input, all in one session; the exit code is that of the last one."""
    stdin: TextIO | None = sys.stdin  # None where it is closed
    if stdin is None:
        raise ConfigError("standard input is closed: chat reads its goals there, one a line")
    runner = _runner(setup)
    code, session_id = 0, None
    with Loop() as loop:
        try:
            for goal in _goals():
                done = loop.run(pursue(runner, goal, show_for(as_json=as_json), session_id))
                code, session_id = exits.BY_STATUS[done.status], done.session_id
        finally:
            loop.run(runner.aclose())
    return _ended(loop, code)


def run_demo(goal: str, *, as_json: bool) -> int:
    """Pursue `goal` with the demo model and a few tools, all on standard output, or its events as JSON."""
    from deepstrike.cli.demo import demo_plane
    from deepstrike.cli.safe import one_line
    from deepstrike.providers.demo import DemoProvider

    if not as_json:
        sys.stdout.write(f"goal   {one_line(goal)}\nmodel  the built-in demo model: fixed rules, no language model\n\n")
        sys.stdout.flush()
    runner = RuntimeRunner(RuntimeOptions(provider=DemoProvider(), execution_plane=demo_plane()))
    with Loop() as loop:
        done = loop.run(pursue(runner, goal, show_for(as_json=as_json, everything_to_stdout=not as_json)))
    return _ended(loop, exits.BY_STATUS[done.status])


def _ended(loop: Loop, code: int) -> int:
    """Waits for no tool that was given up: neither one that swallowed its cancellation nor one in a thread."""
    if loop.left_behind or code in exits.AT_ONCE:
        leave_without_waiting(code)
    return code


def _runner(setup: Setup) -> RuntimeRunner:
    choice = choose(setup.model, setup.base_url, lambda: list(local_servers()))
    options = RuntimeOptions(
        provider=choice.provider(),
        execution_plane=plane_of(setup.tools),
        system_prompt=setup.system,
        max_turns=setup.max_turns,
        timeout_ms=None if setup.timeout is None else max(1, round(setup.timeout * 1000)),
    )
    if setup.model is None:
        sys.stderr.write(f"model: {choice.name} ({choice.why})\n")
    if choice.name == "demo":
        sys.stderr.write("the demo model is no language model; set OPENAI_API_KEY or use --model for a real one\n")
    return RuntimeRunner(options)


def _goals() -> Iterator[str]:
    """The lines that hold something, up to the end of the input; with a prompt on a terminal."""
    for line in _prompted() if sys.stdin.isatty() and sys.stdout.isatty() else sys.stdin:
        if line.strip():
            yield line.strip()


def _prompted() -> Iterator[str]:
    with suppress(ImportError):  # not every Python has it
        import readline  # noqa: F401  gives input() line editing and history

    while True:
        try:
            line = input("> ")
        except EOFError:
            sys.stdout.write("\n")
            return
        yield line
