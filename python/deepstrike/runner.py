"""The runner: goals in, events and results out."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deepstrike.conduct import Conduct, Task
from deepstrike.errors import ConfigError
from deepstrike.execution.lifetime import Opening, close, open_plane
from deepstrike.host.crew import Means
from deepstrike.host.folding import look
from deepstrike.host.parts import checked_part
from deepstrike.host.recent import Recent
from deepstrike.host.requests import given, open_requests
from deepstrike.host.view import view
from deepstrike.kernel import META_TOOLS, encode_input
from deepstrike.options import RuntimeOptions
from deepstrike.output.way import way_of
from deepstrike.providers.base import Provider
from deepstrike.run import Run, block_on
from deepstrike.text import well_formed
from deepstrike.wire.input import Resume, Start
from deepstrike.wire.message import Text
from deepstrike.wire.policy import Attended, Config

if TYPE_CHECKING:
    from types import TracebackType

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.requests import Given
    from deepstrike.host.view import ContextView
    from deepstrike.output.way import Way
    from deepstrike.stream import PendingRequest, RunResult
    from deepstrike.wire.message import Part, ToolSpec


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
        self._recent = Recent()
        self._active: set[Conduct] = set()
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
        raises `RunFailed` on status `error`.
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
        for conduct in active:
            if session_id is None or conduct.session_id == session_id:
                conduct.interrupt("the user interrupted")

    async def pending(self, session_id: str) -> tuple[PendingRequest, ...]:
        """The open requests of a session, the oldest first, read from its log; also of one that is live elsewhere.

        Raises `UnknownSession`, `CorruptLog` or another `SessionError`.
        """
        kernel = await look(_session_id(session_id), self._log)
        return open_requests(kernel.pending())

    async def context(self, session_id: str) -> ContextView:
        """The four slots of a session's context as its log stands, with the tokens of each; also of a live session.

        The same in any process. Raises `UnknownSession`, `CorruptLog` or another `SessionError`.
        """
        return await view(_session_id(session_id), self._log)

    async def sessions(self) -> list[str]:
        """The ids of the sessions in the log."""
        return await self._log.sessions()

    async def aclose(self) -> None:
        """Interrupt what still runs, close the plane and the provider's connections. The runner can be used again."""
        self.interrupt()
        try:
            await close(self._plane)
        finally:
            for provider in (self._options.provider, self._options.summarizer):
                if isinstance(provider, Provider):
                    await provider.aclose()

    async def __aenter__(self) -> RuntimeRunner:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _perform(self, conduct: Conduct, outbox: Outbox) -> RunResult:
        with self._lock:
            self._active.add(conduct)
        try:
            return await conduct.perform(outbox)
        finally:
            with self._lock:
                self._active.discard(conduct)

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

        def make() -> Task:
            way = self._way()
            begun = first(self._config(session, admitted, way))
            _require_crossable(begun)
            means = self._means(admitted, deps, way)
            return Task(session, begun, answers, self._log, self._recent, means, self._options.governance, self._form)

        made = None if isinstance(self._plane, Opening) else make()

        async def prepare() -> Task:
            if made is not None:
                return made
            await open_plane(self._plane)
            return make()

        return Run(lambda: Conduct(session, prepare), self._perform)

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
            options.summarizer,
        )

    def _config(self, session: str, extensions: Mapping[str, object], way: Way | None) -> Config:
        system, tools = self._options.system_prompt, _tools(self._plane)
        if way is not None:
            system, tools = way.system(system), (*tools, *way.tools)
        return Config(
            session=well_formed(session),
            system=well_formed(system),
            preload=tuple(map(well_formed, self._options.initial_memory)),
            tools=tools,
            policy=self._options.policy(),
            limits=self._options.limits(extensions),
            model=self._options.model(extensions),
            placement=self._options.state_placement,
            attended=Attended(
                approvals=self._options.on_permission_request is not None,
                suspensions=self._options.on_tool_suspend is not None,
            ),
            summaries=self._options.summarizer is not None,
        )


def _tools(plane: ExecutionPlane) -> tuple[ToolSpec, ...]:
    tools = plane.specs()
    taken = sorted({spec.name for spec in tools} & META_TOOLS.keys())
    if taken:
        raise ConfigError(f"{taken[0]!r} is a tool of the runtime's own; give the plane's another name")
    return tools


def _require_crossable(first: Start | Resume) -> None:
    try:
        encode_input(first)
    except (UnicodeEncodeError, TypeError) as error:
        raise ConfigError(
            f"the run cannot be recorded: {error}; look for a lone surrogate or a wrong type in a tool's name or "
            "description, or in the model's name"
        ) from error


def _session_id(session_id: str) -> str:
    if not isinstance(session_id, str):
        raise ConfigError(f"session_id must be a text, not {type(session_id).__name__}")
    return session_id


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


def _criteria(criteria: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(criteria, str) or not all(isinstance(text, str) for text in criteria or ()):
        raise ConfigError("criteria must be a list of texts: write criteria=[…]")
    return tuple(map(well_formed, criteria or ()))
