"""What `deepstrike evaluate` does."""

from __future__ import annotations

import math
import os
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deepstrike.cli import exits
from deepstrike.cli.commands import log_of, provider_of, runner_of
from deepstrike.cli.load import plane_of
from deepstrike.cli.pursue import Loop, signals_interrupt
from deepstrike.cli.safe import visible, visible_json
from deepstrike.errors import ConfigError
from deepstrike.harness.evaluate import compare, evaluate, plot, read_cases
from deepstrike.secrets.shapes import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepstrike.cli.given import Setup
    from deepstrike.harness.evaluate import Case, Evaluation, Trial
    from deepstrike.providers.base import LLMProvider
    from deepstrike.sessions.base import SessionLog


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for beside the set-up of a run."""

    cases: str
    session_id: str | None
    judge: str | None
    against: str | None
    repeats: int
    attempts: int
    concurrency: int
    at_least: float | None
    svg: str | None


def run_evaluation(setup: Setup, asked: Asked, *, as_json: bool) -> int:
    """Evaluate, also against another model; print what came of it; the exit code is that of the first."""
    if asked.at_least is not None and math.isnan(asked.at_least):
        raise ConfigError("--at-least takes a rate from 0 to 1, as in --at-least 0.9")
    if asked.svg is not None and not os.access(Path(asked.svg).absolute().parent, os.W_OK | os.X_OK):
        raise ConfigError(f"--svg {asked.svg!r} cannot be written: its folder is missing or not yours to write to")
    cases = read_cases(asked.cases)
    log = log_of(setup, asked.session_id)
    judge = None if asked.judge is None else provider_of(asked.judge, None)
    session = asked.session_id or secrets.token_hex(4)
    found = [_evaluated(setup, asked, cases, log, judge, session)]
    if asked.against is not None and found[0].complete:
        other = replace(setup, model=asked.against, base_url=None)
        found.append(_evaluated(other, asked, cases, log, judge, f"{session} against {asked.against}"))
    _show(found, as_json=as_json)
    if asked.svg is not None:
        Path(asked.svg).write_text(plot(found), encoding="utf-8")
    return _code(found, asked.at_least)


def _evaluated(
    setup: Setup, asked: Asked, cases: list[Case], log: SessionLog | None, judge: LLMProvider | None, session: str
) -> Evaluation:
    runner = runner_of(setup, log, plane_of(setup.tools))

    async def work() -> Evaluation:
        with signals_interrupt(runner):
            return await evaluate(
                runner,
                cases,
                eval_provider=judge,
                repeats=asked.repeats,
                max_attempts=asked.attempts,
                concurrency=asked.concurrency,
                session_id=session,
                name=setup.model or "the default model",
                on_trial=_progress(len(cases) * asked.repeats),
            )

    with Loop() as loop:
        try:
            return loop.run(work())
        finally:
            loop.run(runner.aclose())


def _progress(of: int) -> Callable[[Trial], None] | None:
    """A line that counts, where somebody watches."""
    if not sys.stderr.isatty():
        return None
    done: list[Trial] = []

    def count(trial: Trial) -> None:
        done.append(trial)
        sys.stderr.write(f"\r{len(done)} of {of}{chr(10) if len(done) == of else ''}")
        sys.stderr.flush()

    return count


def _show(found: Sequence[Evaluation], *, as_json: bool) -> None:
    for evaluation in found:
        text = visible_json(evaluation.to_json()) if as_json else f"{visible(evaluation.table())}\n"
        sys.stdout.write(f"{masked(text)}\n")
    if len(found) == 2 and all(evaluation.complete for evaluation in found):
        comparison = compare(*found)
        text = visible_json(comparison.to_json()) if as_json else visible(str(comparison))
        sys.stdout.write(f"{masked(text)}\n")


def _code(found: Sequence[Evaluation], at_least: float | None) -> int:
    first = found[0]
    if not all(evaluation.complete for evaluation in found):
        return exits.INTERRUPTED
    rate = first.pass_rate
    too_few = at_least is not None and (rate is None or rate.value < at_least)
    return exits.FAILED if too_few or any(evaluation.errors for evaluation in found) else 0
