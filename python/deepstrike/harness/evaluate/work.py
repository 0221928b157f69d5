"""Running a data set: each trial a harness of its own, so many at once, each in sessions that can be gone on with."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.given import session_name
from deepstrike.harness.evaluate.cases import Case, cases_of
from deepstrike.harness.evaluate.report import Evaluation, Trial
from deepstrike.harness.loops import EvalLoopHarness, HarnessLoop, SinglePassHarness
from deepstrike.host.folding import asked
from deepstrike.records import decode_record
from deepstrike.wire.event import Resumed, Started

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from deepstrike.harness.base import Attempts
    from deepstrike.harness.gate import QualityGate
    from deepstrike.harness.outcome import HarnessOutcome
    from deepstrike.providers.base import LLMProvider
    from deepstrike.sessions.base import SessionLog

    Harness = SinglePassHarness | EvalLoopHarness | HarnessLoop


@runtime_checkable
class HasRunner(Protocol):
    """An agent: something that has a runner for each session."""

    def runner_of(self, session_id: str | None) -> Attempts:
        """What begins its attempts; kept where the agent keeps named sessions, if one is named."""


async def evaluate(
    agent: Attempts | HasRunner,
    cases: str | os.PathLike[str] | Iterable[Case],
    *,
    gate: QualityGate | None = None,
    eval_provider: LLMProvider | None = None,
    repeats: int = 1,
    max_attempts: int = 1,
    concurrency: int = 8,
    session_id: str | None = None,
    name: str = "",
    on_trial: Callable[[Trial], None] | None = None,
) -> Evaluation:
    """Run every case `repeats` times, at most `concurrency` of them at once, and say how often it passed.

    agent: a `RuntimeRunner`, or an agent that has one.
    cases: a JSON Lines file (see `read_cases`), or `Case`s.
    gate, eval_provider: who judges; neither for cases that say themselves what the answer must be. Such a case must
        hold beside what the judge says. A trial whose run did not end `completed` has not passed.
    max_attempts: attempts of one trial, as for `EvalLoopHarness` and `HarnessLoop`.
    session_id: names the evaluation in the session log. Evaluated again under it, trials that were measured are read
        from the log, and those that are missing, were interrupted or ended in an error are run.
    on_trial: called with each trial as it ends.

    A trial in which something failed (the model service, the judge, a session) measures nothing and is counted apart;
    the others go on. An interrupt of every run of the runner, or of `session_id`, ends it with what there is.
    Cancelling stops the runs under way; their sessions can be gone on with. Raises `ConfigError` for wrong arguments
    and cases.
    """
    work = agent.runner_of(session_id) if isinstance(agent, HasRunner) else agent
    harness = _harness(work, gate, eval_provider, max_attempts)
    found = cases_of(cases)
    if not isinstance(name, str):
        raise ConfigError(f"name must be a text, not {type(name).__name__}")
    for number, value in (("repeats", repeats), ("concurrency", concurrency)):
        _require_count(number, value)
    if gate is None and eval_provider is None:
        _require_checks(found)
    bench = _Bench(work, harness, secrets.token_hex(4) if session_id is None else session_name(session_id), on_trial)
    return await bench.run(found, repeats, concurrency, name)


@dataclass(slots=True, eq=False)
class _Bench:
    """An evaluation under way."""

    work: Attempts
    harness: Harness
    session_id: str
    on_trial: Callable[[Trial], None] | None
    stopped: bool = False

    def interrupt(self, reason: str) -> None:
        """Begin no further trial."""
        del reason  # the trials under way are told by the runner
        self.stopped = True

    async def run(self, cases: list[Case], repeats: int, concurrency: int, name: str) -> Evaluation:
        places = [(case, number) for case in cases for number in range(1, repeats + 1)]
        done: dict[tuple[str, int], Trial] = {}
        waiting = iter(places)
        with self.work.attend(self):
            workers = [asyncio.create_task(self._work(waiting, done)) for _ in range(min(concurrency, len(places)))]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.wait(workers)
        trials = tuple(done[case.id, number] for case, number in places if (case.id, number) in done)
        whole = len(trials) == len(places) and all(trial.status != "user_abort" for trial in trials)
        return Evaluation(name, self.session_id, repeats, trials, whole)

    async def _work(self, waiting: Iterator[tuple[Case, int]], done: dict[tuple[str, int], Trial]) -> None:
        for case, number in waiting:
            if self.stopped:
                return
            trial = done[case.id, number] = await self._trial(case, number)
            if self.on_trial is not None:
                self.on_trial(trial)

    async def _trial(self, case: Case, number: int) -> Trial:
        session = f"{self.session_id}/{case.id}-{case.digest}/{number}"
        try:
            outcome = await self.harness.run(case.request(), session_id=session)
            latency = await self._latency(outcome)
        except ConfigError:
            raise
        except DeepStrikeError as error:
            return Trial(case.id, case.digest, number, session, None, "error", error=error.message)
        return _trial(case, number, session, outcome, latency)

    async def _latency(self, outcome: HarnessOutcome) -> int:
        return sum([await _active_ms(self.work.log, each.session_id) for each in outcome.history])


def _trial(case: Case, number: int, session: str, outcome: HarnessOutcome, latency: int) -> Trial:
    error = _error(outcome)
    checked = case.check(outcome.result)
    passed = outcome.passed and checked.passed and outcome.status == "completed"
    told = [text for text in (checked.feedback, outcome.feedback) if text]
    if outcome.status != "completed":
        told.insert(0, f"the run ended {outcome.status}")
    return Trial(
        case.id,
        case.digest,
        number,
        session,
        None if error is not None else passed,
        outcome.status,
        outcome.result,
        "; ".join(told),
        outcome.overall_score,
        outcome.iterations,
        outcome.total_tokens,
        outcome.cost_usd,
        latency,
        error,
    )


def _error(outcome: HarnessOutcome) -> str | None:
    """Why nothing was measured; None where something was."""
    if outcome.status == "suspended":
        return "the run waits for answers"
    if outcome.status == "user_abort":
        return "the run was interrupted"
    if outcome.status == "error":
        return next((each.error for each in reversed(outcome.history) if each.error), "the run failed")
    if outcome.verdict is not None and outcome.verdict.problem in ("unreadable", "judge_failed"):
        return outcome.feedback
    return None


async def _active_ms(log: SessionLog, session_id: str) -> int:
    """The time between the records of a session while something went on; a pause before a resumption is none."""
    records = [decode_record(line) for line in await asked(session_id, log.read(session_id))]
    pairs = itertools.pairwise(records)
    return sum(after.at - before.at for before, after in pairs if not isinstance(after.event, Resumed | Started))


def _harness(work: Attempts, gate: QualityGate | None, judge: LLMProvider | None, most: int) -> Harness:
    if gate is not None and judge is not None:
        raise ConfigError("gate and eval_provider both say what passes: give one of them")
    if gate is not None:
        return EvalLoopHarness(work, gate, most)
    if judge is not None:
        return HarnessLoop(work, judge, max_attempts=most)
    if most != 1:
        raise ConfigError("max_attempts needs somebody who judges the attempts: give gate or eval_provider")
    return SinglePassHarness(work)


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000:
        raise ConfigError(f"{name} must be a whole number from 1 to 1000, not {value!r}")


def _require_checks(cases: Iterable[Case]) -> None:
    for case in cases:
        if not case.checks_itself:
            raise ConfigError(
                f"nothing says whether case {case.id!r} has passed: give it contains or equals, or evaluate with a "
                "gate or an eval_provider"
            )
