"""Programs that a tool of one's own starts, and that end with its call."""

from __future__ import annotations

import codecs
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError, ToolError
from deepstrike.execution.confine.policy import Limits, Policy
from deepstrike.execution.sandbox_access import checked_environment, checked_path, system_text
from deepstrike.execution.sandbox_run import Launched, signal_name
from deepstrike.tools.allowance import Allowance
from deepstrike.tools.decorator import check_timeout
from deepstrike.tools.results import KEPT_BYTES, Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepstrike.execution.confine.policy import Report

_NO_LIMITS: Final = Limits(None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. `exit_code` is None where a signal ended it, which `signal` names.

    `output` is what it wrote, to either output; of more than 16 MiB the beginning. `timed_out` says that it was killed
    because its time was over.
    """

    output: str
    exit_code: int | None
    signal: str | None = None
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with code 0."""
        return self.exit_code == 0 and not self.timed_out


async def run_process(
    *argv: str | os.PathLike[str],
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout_ms: int | None = None,
    show: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program to its end, from an async tool: `await run_process("git", "status")`.

    It and everything that it has started, also in sessions of their own, is killed when it ends, when `timeout_ms` are
    over, when the call is cancelled (by the tool's `timeout_ms`, an interrupt, a caller who leaves), and when this
    process dies, by `kill -9` too. It is not confined: that is what `SandboxExecutionPlane` is for. There is no shell
    and its input is empty. `env` replaces the environment, None stands for this process's own. `show` gets the output
    as it comes, such as `context.emit`.

    Linux only. Raises `ConfigError` elsewhere and for wrong arguments, `ToolError` if the program cannot be started.
    """
    check_timeout(timeout_ms)
    if show is not None and not callable(show):
        raise ConfigError(f"show={show!r}: give a function of a piece of output, such as context.emit, or None")
    policy = _policy(argv, cwd, env)
    launched = await Launched.start(policy)
    kept, late = Kept(), False

    def expire() -> None:
        nonlocal late
        late = True
        launched.stop()

    allowance = Allowance(None if timeout_ms is None else timeout_ms / 1000, expire)
    try:
        await _read(launched, kept, show)
    finally:
        allowance.stop()
        report = await launched.close()
    return _finished(kept.text(), report, late)


async def _read(launched: Launched, kept: Kept, show: Callable[[str], None] | None) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size = 0
    while (piece := await launched.read()) is not None:
        text = decoder.decode(piece)
        kept.add_text(text)
        if show is not None and text and size <= KEPT_BYTES:
            show(text)
        size += len(piece)
    kept.add_text(decoder.decode(b"", final=True))


def _policy(
    argv: tuple[str | os.PathLike[str], ...], cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
) -> Policy:
    if sys.platform != "linux":
        raise ConfigError("run_process needs Linux, where a program's whole family can be ended; use asyncio's own")
    variables = dict(os.environ) if env is None else checked_environment(env)
    where = os.curdir if cwd is None else checked_path("cwd", cwd)
    words = _words(argv)
    program = shutil.which(words[0], path=variables.get("PATH"))
    if program is None:
        raise ToolError(f"there is no program {words[0]!r}", hint="install it, or name it by its path")
    if not os.path.isdir(where):
        raise ToolError(f"there is no folder {where!r}")
    try:
        words[0], where = os.path.abspath(program), os.path.realpath(where)
    except FileNotFoundError:
        raise ToolError("the folder that this process works in is gone", hint="give cwd=") from None
    return Policy(tuple(words), variables, where, (), (), (), True, _NO_LIMITS, None, False)


def _words(argv: tuple[object, ...]) -> list[str]:
    words = [text for text in map(system_text, argv) if text is not None]
    if len(words) < len(argv) or not words or not words[0]:
        raise ConfigError(
            'run_process takes a program and its arguments, texts or paths, as in run_process("git", "status")'
        )
    return words


def _finished(output: str, report: Report | None, late: bool) -> Finished:
    if report is None:
        raise ToolError("the program's launcher was killed; the program may have taken effect")
    if report.refused:
        raise ToolError(report.refused)
    if late or report.stopped:
        return Finished(output, None, timed_out=late)
    name = None if report.signal is None else signal_name(report.signal)
    return Finished(output, report.exit_code, name)
