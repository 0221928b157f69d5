"""The runner: goals in, events and results out."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deepstrike.attempt import Budget
from deepstrike.blocking import block_on
from deepstrike.children import catalogue, derived, missing_tools
from deepstrike.clock import current_clock
from deepstrike.conduct import Conduct, Task
from deepstrike.errors import ConfigError
from deepstrike.execution.lifetime import Opening, close, notices, open_plane
from deepstrike.host.crew import Means
from deepstrike.host.folding import asked, folded, read, unknown
from deepstrike.host.lineage import parent_in
from deepstrike.host.parts import checked_part
from deepstrike.host.post import post_of
from deepstrike.host.recent import Recent
from deepstrike.host.requests import given, open_requests
from deepstrike.host.view import view
from deepstrike.kernel import META_TOOLS, encode_input
from deepstrike.listening import Listening
from deepstrike.options import RuntimeOptions
from deepstrike.output.way import way_of
from deepstrike.providers.base import Provider
from deepstrike.roles import AgentRunSpec, SubAgents
from deepstrike.run import Run
from deepstrike.staff import Staff
from deepstrike.text import distinct, well_formed
from deepstrike.wire.agents import Agents
from deepstrike.wire.input import Resume, Start
from deepstrike.wire.message import Text
from deepstrike.wire.policy import Attended, Config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from deepstrike.attempt import Attempt, Stoppable
    from deepstrike.children import Draft
    from deepstrike.dream.dreaming import DreamResult
    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.agents import Child
    from deepstrike.host.library import Library
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.requests import Given
    from deepstrike.host.view import ContextView
    from deepstrike.output.way import Way
    from deepstrike.sessions.base import SessionLog
    from deepstrike.stream import PendingRequest, RunResult
    from deepstrike.wire.message import Part, ToolSpec

MAX_MESSAGE = 60 * 1024
"""At most so many bytes of text are one message of `send`."""


class RuntimeRunner:
    """Runs goals with one set of options.

    It holds no state of a run: any number may be in flight at once, on one event loop or several, each with its own
    session. `async with runner` closes at the end what the runner opened on this loop.
    """

    def __init__(self, options: RuntimeOptions) -> None:
        if not isinstance(options, RuntimeOptions):
            raise ConfigError(f"a runner is made of RuntimeOptions(…), not of {type(options).__name__}")
        self._options = options
        self._log = options.log()
        self._plane = options.plane()
        self._form = options.form()
        self._library = options.library()
        self._recent = Recent()
        self._post = post_of(options.signal_source)
        self._listenings: set[Listening] = set()
        self._sub_agents = options.roster()
        self._active: set[Stoppable] = set()
        self._lock = threading.Lock()
        self._staff = (
            None if self._sub_agents is None else Staff(self._sub_agents, self._drafts, options.sub_agent_harness)
        )
        for spec in () if self._sub_agents is None else self._sub_agents.roles:
            derived(options, self._plane, self._log, spec)

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
        session = secrets.token_hex(8) if session_id is None else _session_id(session_id)
        parts, wanted = _parts(goal), _criteria(criteria)
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
        return self._begin(_session_id(session_id), Resume, _answers(answers), extensions, deps)

    def attempt(self, attempt: Attempt) -> Run:
        """One of several tries at the same goal, for whoever judges them and tries again (`deepstrike.harness`).

        Begins the attempt's session; where the log holds it already, goes on with it as `resume` does. It may spend
        what the attempt has left, at most what the options allow. Raises as `run_streaming` and `resume` do.
        """
        session = _session_id(attempt.session_id)
        parts, wanted, said = _parts(attempt.goal), _criteria(attempt.criteria), _feedback(attempt.feedback)
        answers, extensions = _answers(attempt.answers), self._options.admit(attempt.extensions)

        async def prepare() -> Task:
            library = await self._opened(extensions)
            begins = await asked(session, self._log.latest_seq(session)) < 0

            def first(config: Config) -> Start | Resume:
                left = attempt.left.over(config)
                return Start(parts, left, wanted, said) if begins else Resume(left)

            return self._task(session, first, {} if begins else answers, extensions, attempt.deps, library)

        return Run(lambda: Conduct(session, prepare), self._perform)

    @property
    def budget(self) -> Budget:
        """What the options let one goal spend."""
        return Budget(self._options.max_total_tokens, self._options.max_cost_usd, self._options.timeout_ms)

    @property
    def log(self) -> SessionLog:
        """The session log of all runs."""
        return self._log

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

        Raises `ConfigError`, also for a tool that the plane has not. The run raises as that of `run_streaming`.
        """
        if not isinstance(spec, AgentRunSpec):
            raise ConfigError(f"spawn takes an AgentRunSpec(role, task), not {type(spec).__name__}")
        goal = spec.task if task is None else task
        if goal is None:
            raise ConfigError(f"sub-agent {spec.role!r} has no task: AgentRunSpec(role, task), or spawn(spec, task)")
        if spec.tools is not None and not isinstance(self._plane, Opening):
            self._require_tools(spec)
        return self._runner_of(spec).run_streaming(goal, session_id=session_id, deps=deps)

    async def draft(self, session_id: str, goal: str) -> Task:
        """What this runner would do with `goal`; a sub-agent is made of it (children.py)."""
        extensions = self._options.admit({})
        library = await self._opened(extensions)
        return self._task(session_id, lambda config: Start(_parts(goal), config, ()), {}, extensions, None, library)

    async def send(self, session_id: str, text: str) -> bool:
        """Say something to the agent of a session while it works, as its user.

        It hears it at its next boundary: calls that have not begun are not run ("superseded"), and an answer that it is
        writing meanwhile does not end the goal. False where no run of this runner is active on the session: then the
        session's next run hears it, while this runner lives. From any task, thread or loop.

        Raises `UnknownSession` where there is no such session, `QueueFull` where 100 messages wait for it already,
        `ConfigError` for what is no text or more than 60 KiB of it, or a `SessionError`.
        """
        _require_message(text)
        if self._post.say(_session_id(session_id), text):
            return True
        with self._lock:
            begun = any(conduct.session_id == session_id for conduct in self._active)
        if not begun and await self._log.latest_seq(session_id) < 0:
            raise unknown(session_id)
        return self._post.keep(session_id, text)

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
        listening = Listening(self._post, self._log, self._scheduled, max_concurrency, on_result)
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
        records = await read(_session_id(session_id), self._log)
        parent = parent_in(records)
        kernel = await folded(session_id, records)
        return open_requests(kernel.pending(), () if parent is None else parent.path)

    async def context(self, session_id: str) -> ContextView:
        """The four slots of a session's context as its log stands, with the tokens of each; also of a live session.

        The same in any process. Raises `UnknownSession`, `CorruptLog` or another `SessionError`.
        """
        return await view(_session_id(session_id), self._log)

    async def dream(self, agent_id: str, now_ms: int | None = None) -> DreamResult:
        """Draw what is worth remembering from the finished sessions of `agent_id` in the dream store.

        Each session once: one model call without tools through the runner's provider, one commit, then the session is
        saved with `metadata["dreamed"]`. Doing it again changes nothing; a crash or a cancellation leaves what was kept
        so far, and the next dream goes on. A session whose call fails or gives no insights that can be read stays for
        the next time, and is in `failures` of the result. `now_ms` is the time of the marks, None the clock's.
        `timeout_ms` of the options bounds each call.

        Raises `ConfigError` without a dream store, `DeepStrikeError` with code `dream_store` where it fails.
        """
        from deepstrike.dream.dreaming import Dreamer, dream

        options, clock = self._options, current_clock()
        if options.dream_store is None:
            raise ConfigError("dream needs a store: RuntimeOptions(dream_store=SqliteDreamStore(…), agent_id=…)")
        extensions = options.admit({})
        dreamer = Dreamer(options.provider, extensions, options.limits(extensions), options.model_info().id, clock)
        now = clock.now_ms() if now_ms is None else _moment(now_ms)
        return await dream(options.dream_store, _agent_id(agent_id), dreamer, now)

    async def sessions(self) -> list[str]:
        """The ids of the sessions in the log."""
        return await self._log.sessions()

    async def aclose(self) -> None:
        """Interrupt what still runs, close the plane and the provider's connections. The runner can be used again."""
        with self._lock:
            listenings = list(self._listenings)
        for listening in listenings:
            listening.stop()
        self.interrupt()
        roles = () if self._sub_agents is None else self._sub_agents.roles
        try:
            await close(self._plane)
        finally:
            for provider in (self._options.provider, *(spec.provider for spec in roles)):
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
        runner = RuntimeRunner(derived(self._options, self._plane, self._log, spec))
        runner._active, runner._lock, runner._post = self._active, self._lock, self._post
        return runner

    def _drafts(self, spec: AgentRunSpec | None) -> Draft:
        return self._runner_of(spec).draft

    def _require_tools(self, spec: AgentRunSpec) -> None:
        missing = missing_tools(spec.tools or (), (tool.name for tool in self._plane.specs()))
        if missing is not None:
            raise ConfigError(f"sub-agent {spec.role!r}: {missing}")

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
            for spec in () if self._sub_agents is None else self._sub_agents.roles:
                self._require_tools(spec)
            return self._task(session, first, answers, admitted, deps, library)

        waits = isinstance(self._plane, Opening) or self._library.skills is not None
        made = None if waits else make(self._library)

        async def prepare() -> Task:
            return make(await self._opened(admitted)) if made is None else made

        return Run(lambda: Conduct(session, prepare), self._perform, self._form)

    async def _opened(self, extensions: Mapping[str, object]) -> Library:
        """What stands beside the tools, read anew, with the plane open."""
        if isinstance(self._plane, Opening):
            await open_plane(self._plane)
        return await self._library.opened(self._options.model_info().id, self._options.limits(extensions).window)

    def _task(
        self,
        session: str,
        first: Callable[[Config], Start | Resume],
        answers: Mapping[str, Given],
        extensions: Mapping[str, object],
        deps: object,
        library: Library,
    ) -> Task:
        way = self._way()
        begun = first(self._config(session, extensions, way, library))
        _require_crossable(begun)
        means = self._means(extensions, deps, way)
        return Task(
            session,
            begun,
            answers,
            self._log,
            self._recent,
            means,
            library,
            self._post,
            self._options.governance,
            self._form,
            self._perform,
            notices(self._plane),
        )

    def _way(self) -> Way | None:
        if self._form is None:
            return None
        return way_of(self._form, self._options.output_mode, self._options.provider, self._plane.specs())

    def _means(self, extensions: Mapping[str, object], deps: object, way: Way | None) -> Means:
        options = self._options
        dialect = options.provider.dialect if isinstance(options.provider, Provider) else ""
        return Means(
            options.provider,
            self._plane,
            extensions,
            dialect,
            options.model_info().id,
            options.agent_id,
            deps,
            options.on_tool_suspend,
            options.on_permission_request,
            way,
            self._staff,
            cancel_siblings=options.on_tool_error == "cancel_siblings",
        )

    def _config(self, session: str, extensions: Mapping[str, object], way: Way | None, library: Library) -> Config:
        system, tools = self._options.system_prompt, _tools(self._plane)
        limits = self._options.limits(extensions)
        sources = library.sources([spec.name for spec in tools])
        roles = catalogue(self._sub_agents)
        preload = (*self._options.initial_memory, *library.catalogue, *roles)
        if way is not None:
            system, tools = way.system(system), (*tools, *way.tools)
        return Config(
            session=distinct(session),
            system=well_formed(system),
            preload=tuple(map(well_formed, preload)),
            tools=tools,
            policy=self._options.policy(),
            limits=limits,
            model=self._options.model(),
            placement=self._options.state_placement,
            attended=Attended(
                approvals=self._options.on_permission_request is not None,
                suspensions=self._options.on_tool_suspend is not None,
            ),
            agents=_agents(self._sub_agents, tools),
            sources=sources,
        )


def _tools(plane: ExecutionPlane) -> tuple[ToolSpec, ...]:
    tools = plane.specs()
    taken = sorted({spec.name for spec in tools} & META_TOOLS.keys())
    if taken:
        raise ConfigError(f"{taken[0]!r} is a tool of the runtime's own; give the plane's another name")
    return tools


def _agents(sub_agents: SubAgents | None, tools: tuple[ToolSpec, ...]) -> Agents:
    if sub_agents is None and not any(tool.agent for tool in tools):
        return Agents()
    bounds = sub_agents or SubAgents()
    return Agents(sub_agents is not None, bounds.max_depth, bounds.max_children)


def _require_crossable(first: Start | Resume) -> None:
    try:
        encode_input(first)
    except (UnicodeEncodeError, TypeError) as error:
        raise ConfigError(
            f"the run cannot be recorded: {error}; look for a lone surrogate or a wrong type in a tool's name or "
            "description, or in the model's name"
        ) from error


def _require_message(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ConfigError("a message is a text that is not empty")
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise ConfigError(f"a message has at most {MAX_MESSAGE} bytes; start a goal with a longer one")


def _session_id(session_id: str) -> str:
    if not isinstance(session_id, str):
        raise ConfigError(f"session_id must be a text, not {type(session_id).__name__}")
    return session_id


def _agent_id(agent_id: str) -> str:
    if not isinstance(agent_id, str) or not agent_id:
        raise ConfigError("agent_id must be a text that names an agent")
    return agent_id


def _moment(now_ms: int) -> int:
    if isinstance(now_ms, bool) or not isinstance(now_ms, int) or not 0 <= now_ms < 2**53:
        raise ConfigError("now_ms must be milliseconds since 1970, as int(time.time() * 1000)")
    return now_ms


def _answers(answers: Mapping[str, object] | None) -> dict[str, Given]:
    if answers is None:
        return {}
    if not isinstance(answers, Mapping) or not all(isinstance(key, str) for key in answers):
        raise ConfigError("answers must be a dict of values by request id, as in answers={request.request_id: True}")
    return {key: given(value) for key, value in answers.items()}


def _parts(goal: str | Sequence[Part]) -> tuple[Part, ...]:
    if not isinstance(goal, Sequence):
        raise ConfigError(f"the goal must be a text or a list of content parts, not {type(goal).__name__}")
    parts = (_part(Text(goal)),) if isinstance(goal, str) else tuple(map(_part, goal))
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise ConfigError("the goal is empty: give a text, or content parts (Text, Image, File)")
    return parts


def _part(part: Part) -> Part:
    try:
        return checked_part(part)
    except TypeError as error:
        raise ConfigError(f"the goal: {error}") from error


def _feedback(feedback: Sequence[str]) -> tuple[str, ...]:
    if isinstance(feedback, str) or not all(isinstance(text, str) for text in feedback):
        raise ConfigError("feedback must be a list of texts: write feedback=[…]")
    return tuple(map(well_formed, feedback))


def _criteria(criteria: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(criteria, str) or not all(isinstance(text, str) for text in criteria or ()):
        raise ConfigError("criteria must be a list of texts: write criteria=[…]")
    return tuple(map(well_formed, criteria or ()))
