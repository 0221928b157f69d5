"""The course of one harness: attempts and verdicts in turn, each in a session of its own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.attempt import Attempt
from deepstrike.harness.events import AttemptDoneEvent, HarnessDoneEvent, VerdictEvent
from deepstrike.harness.hearing import Hearing, recorded, result_of_run
from deepstrike.harness.outcome import AttemptResult, HarnessOutcome
from deepstrike.harness.purse import Purse
from deepstrike.harness.verdict import Verdict, feedback_turn
from deepstrike.stream import DoneEvent, NoticeEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from deepstrike.harness.base import Attempts
    from deepstrike.harness.events import HarnessEvent
    from deepstrike.harness.judgement import Draft
    from deepstrike.harness.judging import Judge
    from deepstrike.harness.request import HarnessRequest
    from deepstrike.stream import RunResult, Status


class Course:
    """One harness under way; `events` once. Attempt n lives in the session `ID/n`, its verdict in `ID/n/verdict`."""

    def __init__(
        self,
        work: Attempts,
        request: HarnessRequest,
        judge: Judge | None,
        most: int,
        session_id: str,
        answers: Mapping[str, object] | None = None,
        skill_dir: Path | None = None,
    ) -> None:
        """Without a judge whatever comes of an attempt has passed."""
        self.session_id = session_id
        self._work = work
        self._request = request
        self._most = most
        self._answers = answers
        self._skill_dir = skill_dir
        self._purse = Purse(work.budget)
        self._hearing = None if judge is None else Hearing(judge, request, work.log, self._purse)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._end: Status | None = None
        self._result: RunResult | None = None
        self._history: list[AttemptResult] = []
        self._skill: Path | None = None

    def interrupt(self, reason: str) -> None:
        """Stop what is under way and begin nothing more; from any thread."""
        del reason  # the runs have one of their own
        self._stopped = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stop_twice)

    def _stop_twice(self) -> None:
        """Now, and after what is about to begin in this very turn of the loop has begun."""
        self._stop()
        asyncio.get_running_loop().call_soon(self._stop)

    def _stop(self) -> None:
        self._work.interrupt(self._session(len(self._history) + 1))
        if self._hearing is not None:
            self._hearing.interrupt()

    async def events(self) -> AsyncGenerator[HarnessEvent, None]:
        """What happens, ending with the one `HarnessDoneEvent`. Closing it, or cancelling, stops what is under way."""
        self._loop = asyncio.get_running_loop()
        self._purse.begin()
        with self._work.attend(self):
            for number in range(1, self._most + 1):
                async with aclosing(self._attempt(number)) as happening:
                    async for event in happening:
                        yield event
                verdict = self._history[-1].verdict
                yield VerdictEvent(number, verdict)
                if verdict.passed or self._is_over(last=number == self._most):
                    break
        yield self._done()

    def _is_over(self, *, last: bool) -> bool:
        if self._end is None and self._stopped:
            self._end = "user_abort"
        if self._end is None and not last:
            self._end = self._purse.left().ends
        return self._end is not None

    async def _attempt(self, number: int) -> AsyncGenerator[HarnessEvent, None]:
        """One attempt and its verdict."""
        session, later = self._session(number), self._session(number + 1)
        before = await recorded(self._work.log, session, later)
        if before is None:
            run = self._work.attempt(self._asked(session))
            async with run:
                async for event in run:
                    yield _over(number, event) if isinstance(event, DoneEvent) else event
            result = await result_of_run(run)
        else:
            result = before
            yield _recalled(number, result)
        self._result = result
        self._purse.spend(result.usage, result.iterations)
        verdict, draft, tokens = await self._judged(number, result, later)
        if draft is not None and verdict.passed and self._skill_dir is not None:
            yield await self._learn(draft, self._skill_dir)
        self._history.append(_attempt(number, session, result, verdict, tokens))

    def _asked(self, session: str) -> Attempt:
        said = feedback_turn(self._history[-1].verdict) if self._history else None
        return Attempt(
            goal=self._request.goal,
            session_id=session,
            criteria=[each.text for each in self._request.all_criteria],
            extensions=self._request.extensions or {},
            feedback=() if said is None else (said,),
            left=self._purse.left(),
            answers=self._answers,
        )

    async def _judged(self, number: int, result: RunResult, later: str) -> tuple[Verdict, Draft | None, int]:
        if self._hearing is None:
            return Verdict(True, result.error or ""), None, 0
        if result.status == "error":
            return Verdict(False, f"The run failed: {result.error}", problem="run_failed"), None, 0
        if result.status in ("suspended", "user_abort") or self._stopped:
            self._end = result.status if result.status == "suspended" else "user_abort"
            return Verdict(False, f"Not judged: {_why(self._end)}.", problem="not_judged"), None, 0
        heard = await self._hearing.verdict(f"{self._session(number)}/verdict", later, number, result)
        self._end = heard.end
        return heard.verdict, heard.draft, heard.tokens

    async def _learn(self, draft: Draft, skill_dir: Path) -> NoticeEvent:
        from deepstrike.harness.skill import NotWritten, write_skill
        from deepstrike.tools.threads import run_in_thread

        try:
            self._skill = await run_in_thread(lambda: write_skill(skill_dir, draft))
        except (NotWritten, OSError) as error:
            return NoticeEvent("skill_not_written", f"the skill that the judge proposed was not written: {error}")
        return NoticeEvent("skill_written", f"a skill was written to {self._skill}")

    def _session(self, number: int) -> str:
        return f"{self.session_id}/{number}"

    def _done(self) -> HarnessDoneEvent:
        outcome = self._outcome()
        return HarnessDoneEvent(
            outcome.iterations,
            outcome.total_tokens,
            outcome.status,
            replace(self._purse.usage, cost_usd=outcome.cost_usd),
            self.session_id,
            outcome.output,
            outcome.pending or None,
            verdict=max(self._history, key=_rank).verdict,
            outcome=outcome,
        )

    def _outcome(self) -> HarnessOutcome:
        best = max(self._history, key=_rank)
        last = self._result
        return HarnessOutcome(
            result=best.result,
            passed=best.verdict.passed,
            iterations=sum(each.iterations for each in self._history),
            total_tokens=self._purse.tokens,
            status=best.status if best.verdict.passed or self._end is None else self._end,
            overall_score=best.verdict.score,
            feedback=best.verdict.feedback,
            attempts=len(self._history),
            output=best.output,
            verdict=best.verdict,
            history=tuple(self._history),
            session_id=self.session_id,
            pending=() if last is None else last.pending,
            cost_usd=self._purse.cost_usd,
            skill=self._skill,
        )


def _rank(attempt: AttemptResult) -> tuple[bool, bool, float, int]:
    return attempt.rank


def _why(status: Status) -> str:
    return "the attempt waits for answers" if status == "suspended" else "it was interrupted"


def _over(number: int, done: DoneEvent) -> AttemptDoneEvent:
    return AttemptDoneEvent(
        done.iterations,
        done.total_tokens,
        done.status,
        done.usage,
        done.session_id,
        done.output,
        done.pending,
        number,
    )


def _recalled(number: int, result: RunResult) -> AttemptDoneEvent:
    return AttemptDoneEvent(
        result.iterations,
        result.total_tokens,
        result.status,
        result.usage,
        result.session_id,
        result.output,
        result.pending or None,
        number,
    )


def _attempt(number: int, session: str, result: RunResult, verdict: Verdict, judge_tokens: int) -> AttemptResult:
    return AttemptResult(
        number,
        session,
        result.text,
        result.output,
        result.status,
        result.iterations,
        result.total_tokens,
        judge_tokens,
        verdict,
        result.error,
    )
