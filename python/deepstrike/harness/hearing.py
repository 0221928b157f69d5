"""Asking for a verdict: in a session of its own, so that it stands in the log and is not asked for twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deepstrike.attempt import Attempt
from deepstrike.errors import RunFailed
from deepstrike.harness.judging import question
from deepstrike.harness.outcome import HarnessOutcome
from deepstrike.harness.verdict import Verdict, weighed
from deepstrike.host.folding import asked, look
from deepstrike.host.outcome import result_of
from deepstrike.output.form import INVALID
from deepstrike.output.shape import Misfit

if TYPE_CHECKING:
    from deepstrike.harness.judgement import Draft
    from deepstrike.harness.judging import Judge
    from deepstrike.harness.purse import Purse
    from deepstrike.harness.request import HarnessRequest
    from deepstrike.run import Run
    from deepstrike.runner import RuntimeRunner
    from deepstrike.sessions.base import SessionLog
    from deepstrike.stream import RunResult, Status


@dataclass(frozen=True, slots=True)
class Heard:
    """A verdict, the skill proposed with it, what it took, and the status that ends the loop here, if one does."""

    verdict: Verdict
    draft: Draft | None = None
    tokens: int = 0
    end: Status | None = None


class Hearing:
    """Asks one judge about the attempts at one request."""

    def __init__(self, judge: Judge, request: HarnessRequest, log: SessionLog, purse: Purse) -> None:
        self._judge = judge
        self._request = request
        self._log = log
        self._purse = purse
        self._runner: RuntimeRunner | None = None

    def interrupt(self) -> None:
        """Stop asking."""
        if self._runner is not None:
            self._runner.interrupt()

    async def verdict(self, session_id: str, later: str, number: int, result: RunResult) -> Heard:
        """The verdict on `result`, attempt `number`, from the log where it stands there.

        Whatever goes wrong is a verdict that says so. `later` is the session of the attempt behind it: once that is
        there, this verdict is history.
        """
        said = await recorded(self._log, session_id, later)
        if said is None:
            left = self._purse.left()
            if not self._judge.pays(left):
                return _none("Nothing was left of the budget to judge it.", left.used_up)
            said = await self._ask(session_id, number, result)
        self._purse.spend(said.usage)
        return self._heard(said)

    async def _ask(self, session_id: str, number: int, result: RunResult) -> RunResult:
        outcome = HarnessOutcome(
            result.text,
            False,
            result.iterations,
            result.total_tokens,
            result.status,
            attempts=number,
            output=result.output,
            session_id=result.session_id,
        )
        left = self._purse.left()
        self._runner = runner = self._judge.runner(self._request, outcome, left, self._log)
        goal = question(self._request, outcome, self._judge.room())
        try:
            return await result_of_run(runner.attempt(Attempt(goal=goal, session_id=session_id)))
        finally:
            self._runner = None

    def _heard(self, said: RunResult) -> Heard:
        match said.status:
            case "completed":
                return self._read(said)
            case "error" if said.code == INVALID:
                return Heard(_unreadable(said.error), None, said.total_tokens)
            case "error":
                verdict = Verdict(False, f"There is no verdict, the judge failed: {said.error}", problem="judge_failed")
                return Heard(verdict, None, said.total_tokens)
            case "max_turns" | "suspended":
                return Heard(_unreadable(said.error), None, said.total_tokens)
            case "user_abort" | "timeout" | "token_budget":
                told = f"There is no verdict, the judge was stopped: {said.error}"
                verdict = Verdict(False, told, problem="not_judged")
                return Heard(verdict, None, said.total_tokens, said.status)

    def _read(self, said: RunResult) -> Heard:
        from deepstrike.harness.judgement import read_judgement

        criteria = self._request.all_criteria
        try:
            verdict, draft = read_judgement(said.text, criteria)
        except Misfit as misfit:
            return Heard(_unreadable(str(misfit)), None, said.total_tokens)
        return Heard(weighed(verdict, criteria), draft, said.total_tokens)


async def result_of_run(run: Run) -> RunResult:
    """What a run came to, also where it failed. Raises what could not even begin."""
    try:
        return await run
    except RunFailed as failed:
        return failed.result


async def recorded(log: SessionLog, session_id: str, later: str) -> RunResult | None:
    """What the log says of a session that `later` has left behind; None where it is still to be asked."""
    if await asked(later, log.latest_seq(later)) < 0 or await asked(session_id, log.latest_seq(session_id)) < 0:
        return None
    outcome = (await look(session_id, log)).outcome()
    # One that was left behind waits for nothing, and nobody asks for its output any more.
    return None if outcome is None else replace(result_of(session_id, outcome, None), pending=())


def _none(why: str, end: Status | None) -> Heard:
    return Heard(Verdict(False, why, problem="not_judged"), end=end)


def _unreadable(why: str | None) -> Verdict:
    return Verdict(False, f"There is no verdict, the judge's answer could not be read: {why}", problem="unreadable")
