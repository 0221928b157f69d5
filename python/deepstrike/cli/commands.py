"""What `demo`, `run`, `chat` and `resume` do."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from deepstrike.cli import exits
from deepstrike.cli.hint import options_of
from deepstrike.cli.load import plane_of
from deepstrike.cli.pursue import Loop, pursue
from deepstrike.cli.reopening import require_model, require_policy, require_tools, standing_of
from deepstrike.cli.safe import visible
from deepstrike.cli.show import show_for
from deepstrike.cli.signals import leave_without_waiting
from deepstrike.errors import ConfigError
from deepstrike.governance.file import read_policy
from deepstrike.options import RuntimeOptions
from deepstrike.providers.choice import DEMO, choose
from deepstrike.runner import RuntimeRunner
from deepstrike.secrets.shapes import masked
from deepstrike.sessions.places import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.cli.given import Setup
    from deepstrike.execution.local import LocalExecutionPlane
    from deepstrike.providers.base import LLMProvider
    from deepstrike.providers.choice import Choice
    from deepstrike.sessions.base import SessionLog


def run_goal(setup: Setup, goal: str, session_id: str | None, *, as_json: bool) -> int:
    """Pursue one goal; the exit code is that of its status. Kept where a session or a log is named."""
    log = log_of(setup, session_id)
    runner = runner_of(setup, log, plane_of(setup.tools))
    with Loop() as loop:
        try:
            work = runner.run_streaming(goal, session_id=session_id)
            show = show_for(as_json=as_json, options=None if log is None else options_of(setup))
            done = loop.run(pursue(runner, work, show))
        finally:
            loop.run(runner.aclose())
    if log is not None and session_id is None:
        sys.stderr.write(f"session: {done.session_id}\n")
    return _ended(loop, exits.BY_STATUS[done.status])


@dataclass(frozen=True, slots=True)
class Without:
    """What a session may go on without, although it had it."""

    tools: bool = False
    policy: bool = False


def resume_session(
    setup: Setup, session_id: str, answers: Sequence[str], *, as_json: bool, without: Without | None = None
) -> int:
    """Go on with a session's last goal; the exit code is that of its status.

    Of a completed one the recorded answer is shown. A call that is open and whose tool is not given is refused before
    anything is recorded, and so is a session that had a policy and gets none, unless `without` says so.
    """
    without = without or Without()
    given = _answers(answers)
    log = open_log(setup.log_path)
    plane = plane_of(setup.tools)
    with Loop() as loop:
        standing = loop.run(standing_of(log, session_id, setup.log_path))
        if not without.policy:
            require_policy(standing, session_id, setup.policy_path)
        if not without.tools:
            require_tools(standing, session_id, {spec.name for spec in plane.specs()})
        at_rest = standing.completed or (standing.waiting and not given)
        choice = choose(setup.model, setup.base_url)
        if not at_rest:
            require_model(standing, session_id, choice, setup.model)
        provider = choice.provider() if at_rest else _told(choice, setup.model)
        runner = runner_of(setup, log, plane, provider, delegates=standing.delegates)
        if standing.completed and not given and not as_json:
            sys.stdout.write(f"{visible(masked(standing.answer))}\n")
        try:
            work = runner.resume(session_id, answers=given)
            done = loop.run(pursue(runner, work, show_for(as_json=as_json, options=options_of(setup))))
        finally:
            loop.run(runner.aclose())
    return _ended(loop, exits.BY_STATUS[done.status])


def run_chat(setup: Setup, session_id: str | None, *, as_json: bool) -> int:
    """Pursue a goal for each line of the input, all in one session; the exit code is that of the last one."""
    stdin: TextIO | None = sys.stdin  # None where it is closed
    if stdin is None:
        raise ConfigError("standard input is closed: chat reads its goals there, one a line")
    log = log_of(setup, session_id)
    options = None if log is None else options_of(setup)
    runner = runner_of(setup, log, plane_of(setup.tools))
    code = 0
    with Loop() as loop:
        try:
            for goal in _goals():
                work = runner.run_streaming(goal, session_id=session_id)
                done = loop.run(pursue(runner, work, show_for(as_json=as_json, options=options)))
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


def log_of(setup: Setup, session_id: str | None) -> SessionLog | None:
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


def _answers(texts: Sequence[str]) -> dict[str, object]:
    given: dict[str, object] = {}
    for text in texts:
        name, value = _answer(text)
        if name in given:
            raise ConfigError(f"--answer {name}=… stands there twice: give each request one answer")
        given[name] = value
    return given


def runner_of(
    setup: Setup,
    log: SessionLog | None,
    plane: LocalExecutionPlane,
    provider: LLMProvider | None = None,
    *,
    delegates: bool = False,
) -> RuntimeRunner:
    """`provider`: another than `provider_of` gives. `delegates`: it may have sub-agents."""
    options = RuntimeOptions(
        provider=provider or provider_of(setup.model, setup.base_url),
        session_log=log,
        execution_plane=plane,
        governance=None if setup.policy_path is None else read_policy(setup.policy_path),
        system_prompt=setup.system,
        max_turns=setup.max_turns,
        skill_dir=setup.skills,
        timeout_ms=None if setup.timeout is None else max(1, round(setup.timeout * 1000)),
        sub_agents=delegates,
    )
    return RuntimeRunner(options)


def provider_of(model: str | None, base_url: str | None) -> LLMProvider:
    """The model that is named, else the first there is, which is said."""
    return _told(choose(model, base_url), model)


def _told(choice: Choice, model: str | None) -> LLMProvider:
    """The provider of a choice, with a word on it where nobody named the `model`."""
    provider = choice.provider()
    if model is None:
        sys.stderr.write(f"model: {choice.name} ({choice.why})\n")
    if choice.name == DEMO:
        sys.stderr.write("the demo model is no language model; set OPENAI_API_KEY or use --model for a real one\n")
    return provider


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
