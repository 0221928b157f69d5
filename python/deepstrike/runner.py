"""The runner: goals in, events and results out."""

from __future__ import annotations

import secrets
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.attempt import Budget
from deepstrike.blocking import block_on
from deepstrike.children import derived
from deepstrike.clock import current_clock
from deepstrike.conduct import Conduct, Task
from deepstrike.errors import ConfigError
from deepstrike.execution.lifetime import Opening, close
from deepstrike.given import (
    agent_name,
    answers_given,
    criteria_given,
    feedback_given,
    goal_parts,
    message,
    moment,
    session_name,
)
from deepstrike.host.folding import asked, folded, read, unknown
from deepstrike.host.lineage import parent_in
from deepstrike.host.requests import open_requests
from deepstrike.host.view import view
from deepstrike.listening import Listening
from deepstrike.options import RuntimeOptions
from deepstrike.providers.base import Provider
from deepstrike.roles import AgentRunSpec
from deepstrike.run import Run
from deepstrike.tries import Tried, Tries
from deepstrike.wire.input import Resume, Start
from deepstrike.workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from deepstrike.attempt import Attempt, Stoppable
    from deepstrike.children import Draft
    from deepstrike.dream.dreaming import DreamResult
    from deepstrike.host.agents import Child
    from deepstrike.host.library import Library
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.requests import Given
    from deepstrike.host.view import ContextView
    from deepstrike.sessions.base import SessionLog
    from deepstrike.stream import PendingRequest, RunResult
    from deepstrike.tries import TriesHarness
    from deepstrike.wire.message import Part
    from deepstrike.wire.policy import Config


class RuntimeRunner:
    """Runs goals with one set of options.

    It holds no state of a run: any number may be in flight at once, on one event loop or several, each with its own
    session. `async with runner` closes at the end what the runner opened on this loop.
    """

    def __init__(self, options: RuntimeOptions) -> None:
        if not isinstance(options, RuntimeOptions):
            raise ConfigError(f"a runner is made of RuntimeOptions(…), not of {type(options).__name__}")
        self._options = options
        self._shop = Workshop(options, self._drafts, self._perform)
        self._listenings: set[Listening] = set()
        self._active: set[Stoppable] = set()
        self._lock = threading.Lock()

    def run_streaming(
        self,
        goal: str | Sequence[Part],
        *,
        session_id: str | None = None,
        criteria: Sequence[str] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> Run:
        """Pursue `goal`, a text or content parts, and stream what happens.

        Nothing starts before the first await or iteration of the `Run` that is returned. `session_id` continues that
        session, None begins a new one. `criteria` stand with the goal in the prompt. `extensions` go over those of the
        options. `deps` reaches the tools as `ToolContext.deps`.

        Raises `ConfigError` for a goal, session id or extension that is wrong. The run itself raises `SessionBusy`,
        `CorruptLog` or another `SessionError` when the session cannot be opened; awaiting it gives a `RunResult` and
        raises `RunFailed` on status `error`. Where the plane cannot be opened (an MCP server that is down), the run
        ends `error` with nothing recorded.
        """
        session = secrets.token_hex(8) if session_id is None else session_name(session_id)
        parts, wanted = goal_parts(goal), criteria_given(criteria)
        return self._begin(session, lambda config: Start(parts, config, wanted), {}, extensions, deps)

    run = run_streaming
    """The same, named for `await`."""

    def resume(
        self,
        session_id: str,
        *,
        answers: Mapping[str, object] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> Run:
        """Go on with the last goal of a session from its log: interrupted, crashed, limited, failed or suspended.

        Nothing that finished is done again. A call that had not begun is judged anew and run; one that had begun
        without an outcome goes by its tool's `effect`: `read` and `idempotent` run again with the same key, `once` gets
        the result "outcome unknown". The runner's options of today apply: model, tools, system prompt, limits. A goal
        that ended by a limit goes on only if they raise that limit, else it ends the same way without a model call. Of
        a completed session, or a suspended one that gets no answer, the `Run` yields the recorded `DoneEvent` alone.

        `answers` maps the ids of open requests (`DoneEvent.pending`, `pending()`) to answers: to a tool's own question
        a value that JSON can hold, to a permission request True, False, `Deny("why")` or `Approve(arguments)`. The id
        of the call will do while only one open request has it. Requests without an answer stay open. `extensions` and
        `deps` are as for a new goal.

        Raises `ConfigError` for an extension or an answer that is wrong. The run itself raises `UnknownSession`,
        `SessionBusy` while a run is live on the session, `ConfigError` for an answer to a request that is not open
        (then nothing is recorded), `CorruptLog` or another `SessionError`.
        """
        return self._begin(session_name(session_id), Resume, answers_given(answers), extensions, deps)

    def attempt(self, attempt: Attempt) -> Run:
        """One of several tries at the same goal, for whoever judges them and tries again (`deepstrike.harness`).

        Begins the attempt's session; where the log holds it already, goes on with it as `resume` does. It may spend
        what the attempt has left, at most what the options allow. Raises as `run_streaming` and `resume` do.
        """
        prepare = self._prepared(attempt)
        return Run(lambda: Conduct(attempt.session_id, prepare), self._perform)

    def _prepared(self, attempt: Attempt) -> Callable[[], Awaitable[Task]]:
        """What gives the task of an attempt. What is wrong with it is told at once."""
        session = session_name(attempt.session_id)
        parts, wanted, said = (
            goal_parts(attempt.goal),
            criteria_given(attempt.criteria),
            feedback_given(attempt.feedback),
        )
        answers, extensions = answers_given(attempt.answers), self._options.admit(attempt.extensions)

        async def prepare() -> Task:
            library = await self._shop.opened(extensions)
            begins = await asked(session, self._shop.log.latest_seq(session)) < 0

            def first(config: Config) -> Start | Resume:
                left = attempt.left.over(config)
                return Start(parts, left, wanted, said) if begins else Resume(left)

            return self._shop.task(session, first, {} if begins else answers, extensions, attempt.deps, library)

        return prepare

    @property
    def budget(self) -> Budget:
        """What the options let one goal spend."""
        return Budget(self._options.max_total_tokens, self._options.max_cost_usd, self._options.timeout_ms)

    @property
    def log(self) -> SessionLog:
        """The session log of all runs."""
        return self._shop.log

    @contextmanager
    def attend(self, work: Stoppable) -> Iterator[None]:
        """Within the block an `interrupt` of the session of `work`, or of every run, reaches it too."""
        with self._lock:
            self._active.add(work)
        try:
            yield
        finally:
            with self._lock:
                self._active.discard(work)

    def run_sync(
        self,
        goal: str | Sequence[Part],
        *,
        session_id: str | None = None,
        criteria: Sequence[str] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> RunResult:
        """As `await runner.run(…)`, for scripts.

        Where an event loop already runs in this thread, the run gets a thread of its own while this one waits.
        """
        run = self.run_streaming(goal, session_id=session_id, criteria=criteria, extensions=extensions, deps=deps)
        return block_on(run.result)

    def interrupt(self, session_id: str | None = None) -> None:
        """Stop the run of this session, or every run of this runner, promptly; status `user_abort`.

        From any thread. Without a running one it does nothing.
        """
        with self._lock:
            active = list(self._active)
        for work in active:
            if session_id is None or work.session_id == session_id:
                work.interrupt("the user interrupted")

    def spawn(
        self,
        spec: AgentRunSpec,
        task: str | Sequence[Part] | None = None,
        *,
        session_id: str | None = None,
        deps: object = None,
    ) -> Run:
        """Put a sub-agent to work from outside a run: `spec` narrows the tools and limits of this runner's options.

        It is a run like any other, in a session of its own that has no parent; `task` goes before that of the spec. A
        sub-agent within a run, which shares that run's budgets, is what `delegate` and `as_tool` are for.

        With a `sub_agent_harness` its work is judged: try n lives in the session `ID/n`, the limits are for all tries
        together, and work that never passes ends the run `error`, code `not_passed`. Spawned again with the same
        `session_id` it goes on where the log ends.

        Raises `ConfigError`, also for a tool that the plane has not. The run raises as that of `run_streaming`.
        """
        if not isinstance(spec, AgentRunSpec):
            raise ConfigError(f"spawn takes an AgentRunSpec(role, task), not {type(spec).__name__}")
        goal = spec.task if task is None else task
        if goal is None:
            raise ConfigError(f"sub-agent {spec.role!r} has no task: AgentRunSpec(role, task), or spawn(spec, task)")
        if spec.tools is not None and not isinstance(self._shop.plane, Opening):
            self._shop.require_tools(spec)
        runner = self._runner_of(spec)
        if self._options.sub_agent_harness is None:
            return runner.run_streaming(goal, session_id=session_id, deps=deps)
        session = secrets.token_hex(8) if session_id is None else session_name(session_id)
        return runner._tried(self._options.sub_agent_harness, session, goal_parts(goal), deps)

    def _tried(self, harness: TriesHarness, session: str, goal: Sequence[Part], deps: object) -> Run:
        """A run of tries at `goal` that a harness judges."""

        budget = replace(self.budget, turns=self._options.max_turns)

        async def prepare(attempt: Attempt) -> Task:
            return await self._prepared(replace(attempt, deps=deps))()

        return Run(
            lambda: Tried(Tries(session, budget, self.log, prepare, self._perform), harness, goal), self._perform
        )

    async def draft(self, session_id: str, goal: str, extensions: Mapping[str, object]) -> Task:
        """What this runner would do with `goal`; a sub-agent is made of it (children.py)."""
        admitted = self._options.admit(extensions)
        library = await self._shop.opened(admitted)
        return self._shop.task(
            session_id, lambda config: Start(goal_parts(goal), config, ()), {}, admitted, None, library
        )

    async def send(self, session_id: str, text: str) -> bool:
        """Say something to the agent of a session while it works, as its user.

        It hears it at its next boundary: calls that have not begun are not run ("superseded"), and an answer that it is
        writing meanwhile does not end the goal. False where no run of this runner is active on the session: then the
        session's next run hears it, while this runner lives. From any task, thread or loop.

        Raises `UnknownSession` where there is no such session, `QueueFull` where 100 messages wait for it already,
        `ConfigError` for what is no text or more than 60 KiB of it, or a `SessionError`.
        """
        said = message(text)
        if self._shop.post.say(session_name(session_id), said):
            return True
        with self._lock:
            begun = any(conduct.session_id == session_id for conduct in self._active)
        if not begun and await self._shop.log.latest_seq(session_id) < 0:
            raise unknown(session_id)
        return self._shop.post.keep(session_id, said)

    async def listen(self, *, max_concurrency: int = 4, on_result: Callable[[RunResult], object] | None = None) -> None:
        """Start a run for each scheduled prompt of the signal source, until it is destroyed or this is cancelled.

        Each has a session of its own, `scheduled-` and a random id, unless the prompt names one; at most
        `max_concurrency` run at once, the others wait. `on_result` is called on the loop with the result of each,
        whatever its status. A run that fails is logged and ends nothing. Cancelling stops the runs that are under way,
        `aclose` too; `SignalGateway.destroy` lets them end. While this listens, prompts come to no other run.

        Where the gateway has a store, a prompt stays in it until its run has ended: after a crash `listen` goes on with
        its session.

        Raises `ConfigError` where the options have no `signal_source`, or for a wrong argument.
        """
        if self._options.signal_source is None:
            raise ConfigError("listen needs RuntimeOptions(signal_source=…), a SignalGateway or a source of your own")
        if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 1:
            raise ConfigError(f"max_concurrency must be a whole number of at least 1, not {max_concurrency!r}")
        listening = Listening(self._shop.post, self._shop.log, self._scheduled, max_concurrency, on_result)
        with self._lock:
            self._listenings.add(listening)
        try:
            await listening.run()
        finally:
            with self._lock:
                self._listenings.discard(listening)

    def _scheduled(self, session_id: str, goal: str | None) -> Run:
        return self.resume(session_id) if goal is None else self.run(goal, session_id=session_id)

    async def pending(self, session_id: str) -> tuple[PendingRequest, ...]:
        """The open requests of a session, the oldest first, read from its log; also of one that is live elsewhere.

        Raises `UnknownSession`, `CorruptLog` or another `SessionError`.
        """
        records = await read(session_name(session_id), self._shop.log)
        parent = parent_in(records)
        kernel = await folded(session_id, records)
        return open_requests(kernel.pending(), () if parent is None else parent.path)

    async def context(self, session_id: str) -> ContextView:
        """The four slots of a session's context as its log stands, with the tokens of each; also of a live session.

        The same in any process. Raises `UnknownSession`, `CorruptLog` or another `SessionError`.
        """
        return await view(session_name(session_id), self._shop.log)

    async def dream(self, agent_id: str, now_ms: int | None = None) -> DreamResult:
        """Draw what is worth remembering from the finished sessions of `agent_id` in the dream store.

        Each session once: one model call without tools through the runner's provider, one commit, then the session is
        saved with `metadata["dreamed"]`. Doing it again changes nothing; a crash or a cancellation leaves what was kept
        so far, and the next dream goes on. A session whose call fails or gives no insights that can be read stays for
        the next time, and is in `failures` of the result. `now_ms` is the time of the marks, None the clock's.
        `timeout_ms` of the options bounds each call, `max_total_tokens` and `max_cost_usd` all of them together: what
        they leave no room for waits for the next dream, which may spend as much again (`failures`, `token_budget`).

        Raises `ConfigError` without a dream store, `DeepStrikeError` with code `dream_store` where it fails.
        """
        from deepstrike.dream.dreaming import Dreamer, dream

        options, clock = self._options, current_clock()
        if options.dream_store is None:
            raise ConfigError("dream needs a store: RuntimeOptions(dream_store=SqliteDreamStore(…), agent_id=…)")
        extensions = options.admit({})
        dreamer = Dreamer(options.provider, extensions, options.limits(extensions), options.model_info(), clock)
        now = clock.now_ms() if now_ms is None else moment(now_ms)
        return await dream(options.dream_store, agent_name(agent_id), dreamer, now)

    async def sessions(self) -> list[str]:
        """The ids of the sessions in the log."""
        return await self._shop.log.sessions()

    async def aclose(self) -> None:
        """Interrupt what still runs, close the plane and the provider's connections. The runner can be used again."""
        with self._lock:
            listenings = list(self._listenings)
        for listening in listenings:
            listening.stop()
        self.interrupt()
        try:
            await close(self._shop.plane)
        finally:
            roles = (spec.provider for spec in self._shop.roles)
            for provider in (self._options.provider, self._options.summarizer, *roles):
                if isinstance(provider, Provider):
                    await provider.aclose()

    async def __aenter__(self) -> RuntimeRunner:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _perform(self, work: Child, outbox: Outbox) -> RunResult:
        with self.attend(work):
            return await work.perform(outbox)

    def _runner_of(self, spec: AgentRunSpec | None) -> RuntimeRunner:
        """A runner of this role, whose runs an interrupt of this one finds."""
        runner = RuntimeRunner(derived(self._options, self._shop.plane, self._shop.log, spec))
        runner._active, runner._lock, runner._shop.post = self._active, self._lock, self._shop.post
        return runner

    def _drafts(self, spec: AgentRunSpec | None) -> Draft:
        return self._runner_of(spec).draft

    def _begin(
        self,
        session: str,
        first: Callable[[Config], Start | Resume],
        answers: Mapping[str, Given],
        extensions: Mapping[str, object] | None,
        deps: object,
    ) -> Run:
        """The run that begins with `first` of its configuration. What is wrong is told here, if it is known already."""
        admitted = self._options.admit({} if extensions is None else extensions)

        def make(library: Library) -> Task:
            for spec in self._shop.roles:
                self._shop.require_tools(spec)
            return self._shop.task(session, first, answers, admitted, deps, library)

        made = None if self._shop.opens_late else make(self._shop.library)

        async def prepare() -> Task:
            return make(await self._shop.opened(admitted)) if made is None else made

        return Run(lambda: Conduct(session, prepare), self._perform, self._shop.form)
