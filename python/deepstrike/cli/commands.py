"""What `demo`, `run`, `chat` and `resume` do."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
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
from deepstrike.sessions.places import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.cli.given import Setup
    from deepstrike.sessions.base import SessionLog


def run_goal(setup: Setup, goal: str, session_id: str | None, *, as_json: bool) -> int:
    """Pursue one goal; the exit code is that of its status. Kept where a session or a log is named."""
    log = _log_of(setup, session_id)
    runner = _runner(setup, log)
    with Loop() as loop:
        try:
            work = runner.run_streaming(goal, session_id=session_id)
            done = loop.run(pursue(runner, work, show_for(as_json=as_json)))
        finally:
            loop.run(runner.aclose())
    if log is not None and session_id is None:
        sys.stderr.write(f"session: {done.session_id}\n")
    return _ended(loop, exits.BY_STATUS[done.status])


def resume_session(setup: Setup, session_id: str, answers: Sequence[str], *, as_json: bool) -> int:
    """Go on with a session's last goal; the exit code is that of its status."""
    given = dict(map(_answer, answers))
    runner = _runner(setup, open_log(setup.log_path))
    with Loop() as loop:
        try:
            work = runner.resume(session_id, answers=given)
            done = loop.run(pursue(runner, work, show_for(as_json=as_json)))
        finally:
            loop.run(runner.aclose())
    return _ended(loop, exits.BY_STATUS[done.status])


def run_chat(setup: Setup, session_id: str | None, *, as_json: bool) -> int:
    """Pursue a goal for each line of the input, all in one session; the exit code is that of the last one."""
    stdin: TextIO | None = sys.stdin  # None where it is closed
    if stdin is None:
        raise ConfigError("standard input is closed: chat reads its goals there, one a line")
    runner = _runner(setup, _log_of(setup, session_id))
    code = 0
    with Loop() as loop:
        try:
            for goal in _goals():
                work = runner.run_streaming(goal, session_id=session_id)
                done = loop.run(pursue(runner, work, show_for(as_json=as_json)))
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
        show = show_for(as_json=as_json, everything_to_stdout=not as_json)
        done = loop.run(pursue(runner, runner.run_streaming(goal), show))
    return _ended(loop, exits.BY_STATUS[done.status])


def _ended(loop: Loop, code: int) -> int:
    """Waits for no tool that was given up: neither one that swallowed its cancellation nor one in a thread."""
    if loop.left_behind or code in exits.AT_ONCE:
        leave_without_waiting(code)
    return code


def _log_of(setup: Setup, session_id: str | None) -> SessionLog | None:
    """None, for a session in memory, where nothing says that it is to be kept."""
    return None if session_id is None and setup.log_path is None else open_log(setup.log_path)


def _answer(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"--answer takes ID=VALUE, as in --answer 12=true; {text!r} is not of that form")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _runner(setup: Setup, log: SessionLog | None) -> RuntimeRunner:
    choice = choose(setup.model, setup.base_url, lambda: list(local_servers()))
    options = RuntimeOptions(
        provider=choice.provider(),
        session_log=log,
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
