"""Sub-agents whose work is judged, and done again until it is good enough."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from deepstrike.attempt import Budget
from deepstrike.conduct import Conduct
from deepstrike.run import Run
from deepstrike.stream import DoneEvent, ErrorEvent, RunResult, UsageEvent
from deepstrike.wire.agents import Grant
from deepstrike.wire.input import Start

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from deepstrike.attempt import Attempt, Stoppable
    from deepstrike.children import DraftedAgent
    from deepstrike.conduct import Task
    from deepstrike.host.agents import AgentCall, Child, Household
    from deepstrike.host.outbox import Outbox
    from deepstrike.run import Perform
    from deepstrike.sessions.base import SessionLog
    from deepstrike.stream import StreamEvent
    from deepstrike.wire.message import Part

_MICRO = 1_000_000
_NOT_PASSED = "not_passed"
_NOTHING = UsageEvent(0, 0, cost_usd=0.0)


class Trying(Protocol):
    """The tries of one sub-agent under way: its events, once. Closing them stops what is under way."""

    def __aiter__(self) -> AsyncIterator[object]:
        """Stream events, and the harness's own `attempt_done` and `verdict`; the last is a `DoneEvent` over all."""

    async def aclose(self) -> None:
        """Stop what is under way and wait until it has let go."""


class TriesHarness(Protocol):
    """Has a sub-agent's work judged and done again (`SubAgentHarnessConfig`)."""

    def require_payable(self, max_cost_usd: float | None) -> None:
        """Raises `ConfigError` where the judge's cost could not be counted."""

    def trying(self, work: Tries, task: str | Sequence[Part], session_id: str) -> Trying:
        """The tries at a task; n lives in the session `ID/n`. They go on where the log ends."""

    def objection(self, done: DoneEvent) -> str | None:
        """What is wrong with the best try, from the last event; None where it has passed."""

    def text_of(self, done: DoneEvent) -> str:
        """The text of the best try."""


@dataclass(frozen=True, slots=True)
class TriedAgent:
    """A kind of sub-agent that is put through a harness."""

    kind: DraftedAgent
    harness: TriesHarness

    def child(self, household: Household, call: AgentCall) -> Child:
        """One of them, for this call (host/agents.py)."""
        grant = call.grant
        cost_usd = None if grant.cost is None else grant.cost / _MICRO
        budget = Budget(grant.tokens, cost_usd, grant.time_ms, grant.turns)

        async def prepare(attempt: Attempt) -> Task:
            left, cost = attempt.left, attempt.left.cost_usd
            micro = None if cost is None else int(cost * _MICRO)
            names = (*call.names, attempt.session_id.rpartition("/")[2])
            turns = grant.turns if left.turns is None else left.turns
            part = Grant(turns, left.tokens, micro, left.time_ms, grant.only)
            task = await self.kind.task(
                household, replace(call, session_id=attempt.session_id, names=names, grant=part)
            )
            if isinstance(task.first, Start) and attempt.feedback:
                task = replace(task, first=msgspec.structs.replace(task.first, feedback=tuple(attempt.feedback)))
            return task

        tries = Tries(call.session_id, budget, household.log, prepare, household.perform)
        return Tried(tries, self.harness, call.task)


class Tries:
    """Begins the tries of one sub-agent; what a harness needs of whoever does the work (`harness/base.py`)."""

    def __init__(
        self,
        session_id: str,
        budget: Budget,
        log: SessionLog,
        prepare: Callable[[Attempt], Awaitable[Task]],
        perform: Perform,
    ) -> None:
        """`budget` is for all of them together; `prepare` gives what one does."""
        self.session_id = session_id
        self.budget = budget
        self.log = log
        self.course: Stoppable | None = None
        self._prepare = prepare
        self._perform = perform
        self._begun: list[Conduct] = []

    def attempt(self, attempt: Attempt) -> Run:
        """Begin a try in its session, or go on with the one that the log holds."""
        conduct = Conduct(attempt.session_id, lambda: self._prepare(attempt))
        self._begun.append(conduct)
        return Run(lambda: conduct, self._perform)

    def interrupt(self, session_id: str) -> None:
        """Stop the try that is live on this session."""
        if self._begun and self._begun[-1].session_id == session_id:
            self._begun[-1].interrupt("the user interrupted")

    @contextmanager
    def attend(self, work: Stoppable) -> Iterator[None]:
        """An interrupt of the sub-agent reaches `work`."""
        self.course = work
        yield

    @property
    def cut(self) -> RunResult | None:
        """What the tries begun here have used together, with the end of the last; None before one has come to it."""
        results = [conduct.result for conduct in self._begun if conduct.result is not None]
        if not results:
            return None
        usage, turns = _NOTHING, 0
        for result in results:
            usage, turns = _sum(usage, result.usage), turns + result.iterations
        tokens = usage.input_tokens + usage.output_tokens
        return replace(results[-1], iterations=turns, usage=usage, total_tokens=tokens)


class Tried:
    """A sub-agent at work whose work is judged (`Child`, host/agents.py)."""

    def __init__(self, tries: Tries, harness: TriesHarness, task: str | Sequence[Part]) -> None:
        self.session_id = tries.session_id
        self.result: RunResult | None = None
        self._tries = tries
        self._harness = harness
        self._task = task
        self._interrupted: str | None = None

    def interrupt(self, reason: str) -> None:
        """Stop the try under way and begin no other one; from any thread."""
        self._interrupted = reason
        if self._tries.course is not None:
            self._tries.course.interrupt(reason)

    async def perform(self, outbox: Outbox) -> RunResult:
        """See `Child`."""
        run = self._harness.trying(self._tries, self._task, self.session_id)
        try:
            async for event in run:
                if self._interrupted is not None and self._tries.course is not None:
                    self._tries.course.interrupt(self._interrupted)
                if isinstance(event, DoneEvent):
                    self.result = self._came_to(event)
                    if self.result.code == _NOT_PASSED:
                        outbox.put(ErrorEvent(self.result.error or "", _NOT_PASSED, retryable=False))
                        event = replace(event, status="error")
                # What a harness adds to the stream goes to the caller like the rest; no room below it knows its types.
                if outbox.put(cast("StreamEvent", event)):
                    await outbox.room()
        finally:
            await run.aclose()
            if self.result is None:
                self.result = self._tries.cut
        if self.result is None:
            raise RuntimeError("the tries of a sub-agent ended without an end; please report this")
        return self.result

    def _came_to(self, done: DoneEvent) -> RunResult:
        wrong = self._harness.objection(done)
        failed = done.status == "completed" and wrong is not None
        return RunResult(
            text=self._harness.text_of(done),
            output=done.output,
            status="error" if failed else done.status,
            pending=done.pending or (),
            iterations=done.iterations,
            usage=done.usage or _NOTHING,
            total_tokens=done.total_tokens,
            session_id=self.session_id,
            error=None if wrong is None else f"its work was not good enough: {wrong}",
            code=_NOT_PASSED if failed else None,
        )


def _sum(one: UsageEvent, other: UsageEvent) -> UsageEvent:
    cost = None if one.cost_usd is None or other.cost_usd is None else one.cost_usd + other.cost_usd
    return UsageEvent(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cached_tokens + other.cached_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
        cost,
    )
