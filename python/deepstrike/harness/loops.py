"""The three harnesses: once, until a gate passes, until a judge does."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepstrike.attempt import Budget
from deepstrike.errors import ConfigError
from deepstrike.given import session_name
from deepstrike.harness.course import Course
from deepstrike.harness.events import HarnessDoneEvent
from deepstrike.harness.gate import require_gate
from deepstrike.harness.judging import GateJudge, ModelJudge
from deepstrike.harness.request import HarnessRequest
from deepstrike.harness.stream import HarnessRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.harness.base import Attempts
    from deepstrike.harness.gate import QualityGate
    from deepstrike.harness.judging import Judge
    from deepstrike.harness.outcome import HarnessOutcome
    from deepstrike.providers.base import LLMProvider
    from deepstrike.stream import DoneEvent
    from deepstrike.wire.message import Part

MAX_ATTEMPTS = 3


class _Harness:
    """A way of judging, over something that can begin attempts. Any number of requests may be under way at once."""

    def __init__(self, work: Attempts, judge: Judge | None, most: int, skill_dir: Path | None = None) -> None:
        missing = [name for name in ("attempt", "attend", "interrupt") if not callable(getattr(work, name, None))]
        if missing:
            has_one = callable(getattr(work, "runner_of", None))
            hint = "; give its runner, agent.runner_of(session_id)" if has_one else ""
            raise ConfigError(
                f"a harness is made of a RuntimeRunner, or of something else that can begin attempts; "
                f"{type(work).__name__} has no {missing[0]}(…){hint}"
            )
        self._work = work
        self._judge = judge
        self._most = most
        self._skill_dir = skill_dir

    async def run(
        self,
        request: HarnessRequest,
        *,
        session_id: str | None = None,
        answers: Mapping[str, object] | None = None,
    ) -> HarnessOutcome:
        """Run the request to its outcome.

        `session_id` names the whole: attempt n lives in the session `ID/n`, its verdict in `ID/n/verdict`. Given again,
        in any process, it goes on where the log ends: attempts and verdicts that stand there are not asked for again,
        so it must be given with the same request. None begins anew. `answers` are those of a suspended attempt, as for
        `RuntimeRunner.resume`. A run that fails is a failed attempt; raises `SessionBusy` and whatever else keeps a run
        from beginning.
        """
        return await self.run_streaming(request, session_id=session_id, answers=answers).outcome()

    def run_streaming(
        self,
        request: HarnessRequest,
        *,
        session_id: str | None = None,
        answers: Mapping[str, object] | None = None,
    ) -> HarnessRun:
        """The same, with what happens on the way: the events of the runs, `attempt_done` behind each, its `verdict`.

        Only the last event has the type `done`; it carries the best attempt's `verdict` and the `outcome`.
        """
        if not isinstance(request, HarnessRequest):
            raise ConfigError(f"a harness runs a HarnessRequest(goal=…), not {type(request).__name__}")
        session = secrets.token_hex(8) if session_id is None else session_name(session_id)
        return HarnessRun(Course(self._work, request, self._judge, self._most, session, answers, self._skill_dir))


class SinglePassHarness(_Harness):
    """Runs the goal once. The outcome has always passed; its `status` tells how the run ended."""

    def __init__(self, runner: Attempts) -> None:
        super().__init__(runner, None, 1)


class EvalLoopHarness(_Harness):
    """Runs the goal until the gate passes an attempt, at most `max_attempts` times.

    Each attempt is a session of its own and begins anew; of the one before it knows the gate's feedback, as a turn
    behind the goal. An attempt that ended `error` has not passed, whatever the gate says. The budgets and the time of
    the options are for all attempts together. Raises `ConfigError`.
    """

    def __init__(self, runner: Attempts, gate: QualityGate, max_attempts: int = MAX_ATTEMPTS) -> None:
        require_gate(gate)
        super().__init__(runner, GateJudge(gate), _attempts(max_attempts))


class HarnessLoop(_Harness):
    """Runs the goal until a model, asked by schema for a verdict, passes an attempt, at most `max_attempts` times.

    As `EvalLoopHarness`, with `eval_provider` in the place of the gate. Its tokens, cost and time count in the budgets
    of the options. A required criterion that was not met overrules its "passed"; an answer that cannot be read, also
    after two repairs, is a failure that says so. With `skill_dir` an attempt that passed may leave a skill there, below
    that folder only and never over one that exists. Raises `ConfigError`, also where the options have a budget in
    dollars and `eval_provider` has no price.
    """

    def __init__(
        self,
        runner: Attempts,
        eval_provider: LLMProvider,
        *,
        max_attempts: int = MAX_ATTEMPTS,
        skill_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        if skill_dir is not None and not isinstance(skill_dir, str | os.PathLike):
            raise ConfigError(f'skill_dir must be the path of a folder, as in "./skills", not {skill_dir!r}')
        folder = None if skill_dir is None else Path(skill_dir).expanduser().absolute()
        judge = ModelJudge(eval_provider, teaches=folder is not None)
        super().__init__(runner, judge, _attempts(max_attempts), folder)
        judge.options(Budget(cost_usd=runner.budget.cost_usd))


@dataclass(frozen=True, slots=True)
class SubAgentHarnessConfig:
    """Puts each sub-agent through a `HarnessLoop`: judged by `eval_provider`, at most `max_attempts` attempts."""

    eval_provider: LLMProvider
    max_attempts: int = MAX_ATTEMPTS

    def __post_init__(self) -> None:
        _attempts(self.max_attempts)
        self.require_payable(None)

    def require_payable(self, max_cost_usd: float | None) -> None:
        """Raises `ConfigError` where there is a budget in dollars and `eval_provider` has no price."""
        ModelJudge(self.eval_provider).options(Budget(cost_usd=max_cost_usd))

    def trying(self, work: Attempts, task: str | Sequence[Part], session_id: str) -> HarnessRun:
        """The attempts at a sub-agent's task; see `deepstrike.tries.TriesHarness`."""
        loop = HarnessLoop(work, self.eval_provider, max_attempts=self.max_attempts)
        return loop.run_streaming(HarnessRequest(task), session_id=session_id)

    def objection(self, done: DoneEvent) -> str | None:
        """What the judge says against the best attempt; None where it has passed."""
        if not isinstance(done, HarnessDoneEvent) or done.verdict.passed:
            return None
        return done.verdict.feedback or "it was not passed"

    def text_of(self, done: DoneEvent) -> str:
        """The text of the best attempt."""
        return done.outcome.result if isinstance(done, HarnessDoneEvent) else ""


def _attempts(most: object) -> int:
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ConfigError(f"max_attempts must be a whole number from 1 on, not {most!r}")
    return most
