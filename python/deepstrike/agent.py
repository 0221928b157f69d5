"""The short form: a model, tools and instructions in one line, on the same runner as everything else."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict

from deepstrike.blocking import block_on, iterate_on
from deepstrike.errors import ConfigError
from deepstrike.execution.base import ExecutionPlane
from deepstrike.execution.composite import CompositePlane
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.options import RuntimeOptions
from deepstrike.providers.base import Provider
from deepstrike.providers.choice import choose
from deepstrike.providers.settings import check_names
from deepstrike.runner import RuntimeRunner
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.tools.decorator import tool_in

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike
    from types import FrameType, TracebackType

    from typing_extensions import Unpack

    from deepstrike.governance.policy import Governance
    from deepstrike.harness.loops import SubAgentHarnessConfig
    from deepstrike.knowledge.base import KnowledgeSource
    from deepstrike.memory.base import DreamStore
    from deepstrike.output.way import OutputMode
    from deepstrike.providers.base import LLMProvider
    from deepstrike.roles import AgentRunSpec, SubAgents
    from deepstrike.run import Run
    from deepstrike.sessions.base import SessionLog
    from deepstrike.signals.source import SignalSource
    from deepstrike.stream import PendingRequest, PermissionRequestEvent, RunResult, StreamEvent, ToolSuspendEvent
    from deepstrike.tools.definition import Tool
    from deepstrike.wire.message import Part

_log = logging.getLogger("deepstrike")

ToolSource: TypeAlias = Callable[..., object] | ExecutionPlane
"""What an agent takes among its tools: a function, a `@tool`, or a plane with any number of them."""

_HERE: Final[Mapping[str, str]] = {
    "provider": "the model: Agent(provider)",
    "execution_plane": "one of the tools: tools=[plane]",
    "system_prompt": "the instructions: instructions=…",
}


class AgentOptions(TypedDict, total=False):
    """The fields of `RuntimeOptions` that an agent takes, with their meaning and defaults there."""

    session_log: SessionLog | None
    max_tokens: int | None
    max_turns: int
    timeout_ms: int | None
    extensions: Mapping[str, object]
    initial_memory: Sequence[str]
    agent_id: str | None
    max_total_tokens: int | None
    max_cost_usd: float | None
    max_parallel_tools: int
    summarizer: LLMProvider | None
    state_placement: Literal["frozen", "live"]
    on_tool_suspend: Callable[[ToolSuspendEvent], object] | None
    on_permission_request: Callable[[PermissionRequestEvent], object] | None
    on_tool_error: Literal["continue", "cancel_siblings"]
    governance: Governance | None
    output_type: object | None
    output_mode: OutputMode
    durability: Literal["os", "disk"] | None
    sub_agents: bool | Sequence[AgentRunSpec] | SubAgents | None
    sub_agent_harness: SubAgentHarnessConfig | None
    skill_dir: str | PathLike[str] | None
    knowledge_source: KnowledgeSource | None
    dream_store: DreamStore | None
    signal_source: SignalSource | None


class Agent:
    """A model with tools and instructions, ready to run.

    `model` is an id, `"provider:name"` (as in `"openai:gpt-5-mini"`) or `"demo"`, or a provider object. None takes the
    first that there is of the address in `OPENAI_BASE_URL`, a configured key, a model server on this machine (Ollama,
    llama-server, LM Studio, vLLM; looked for during 0.4 s at most) and the embedded demo model, and says in one line of
    the log, at level warning, which it is. No goal is sent anywhere before.

    `tools` are functions, `@tool`s, MCP servers (`mcp("command …")`) and other planes. `instructions` are the system
    prompt. The other keywords are those of `RuntimeOptions`; any wrong value raises `ConfigError` here, a wrong keyword
    a `TypeError`.

    A run with a `session_id` is durable: its session is kept in the user's SQLite file (`$DEEPSTRIKE_HOME/sessions.db`,
    where the command line looks too) and goes on after a crash. One without is kept in memory as long as this object
    lives. With a `session_log` of one's own every session is kept there.

    It holds no state of a run, so any number may be under way, on one event loop or several. `async with agent` closes
    at the end what it opened on this loop.
    """

    def __init__(
        self,
        model: str | LLMProvider | None = None,
        *,
        tools: Iterable[ToolSource] = (),
        instructions: str | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        _check_keywords(options)
        durability = options.pop("durability", None)
        given = RuntimeOptions(
            provider=_provider(model),
            execution_plane=_plane(tools, sys._getframe(1)),
            system_prompt="" if instructions is None else instructions,
            **options,
        )
        self._options = given
        self._memory = InMemorySessionLog()
        self._lock = threading.Lock()
        self._kept: RuntimeRunner | None = None
        if given.session_log is not None:
            self._kept = RuntimeRunner(replace(given, durability=durability))
        self._passing = RuntimeRunner(replace(given, session_log=self._memory))
        self._durability = _checked_durability(durability)

    def __repr__(self) -> str:
        return f"Agent({self.model!r})"

    @property
    def model(self) -> str:
        """The id of the model, by its vendor's name for it; of a provider of one's own that has none, its class."""
        provider = self._options.provider
        return provider.info.id if isinstance(provider, Provider) and provider.info.id else type(provider).__name__

    def run_streaming(
        self,
        goal: str | Sequence[Part],
        *,
        session_id: str | None = None,
        criteria: Sequence[str] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> Run:
        """Pursue `goal` and stream what happens; see `RuntimeRunner.run_streaming`."""
        runner = self.runner_of(session_id)
        return runner.run_streaming(goal, session_id=session_id, criteria=criteria, extensions=extensions, deps=deps)

    run = run_streaming
    """The same, named for `await`."""

    def run_sync(
        self,
        goal: str | Sequence[Part],
        *,
        session_id: str | None = None,
        criteria: Sequence[str] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> RunResult:
        """As `await agent.run(…)`, for scripts; in a thread of its own where a loop runs here."""
        run = self.run_streaming(goal, session_id=session_id, criteria=criteria, extensions=extensions, deps=deps)
        return block_on(run.result)

    def stream_sync(
        self,
        goal: str | Sequence[Part],
        *,
        session_id: str | None = None,
        criteria: Sequence[str] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> Generator[StreamEvent, None, None]:
        """The events of `run_streaming` for a plain `for`; also where a loop runs here.

        Leaving the `for` early (`break`, an exception, Ctrl-C, `close()`) stops the run and waits until it has let go.
        Nothing starts before the first event is asked for; the run has an event loop and a thread of its own.
        """
        run = self.run_streaming(goal, session_id=session_id, criteria=criteria, extensions=extensions, deps=deps)
        return iterate_on(lambda: aiter(run))

    def drafts_sync(
        self,
        goal: str | Sequence[Part],
        *,
        session_id: str | None = None,
        criteria: Sequence[str] | None = None,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> Generator[object, None, None]:
        """What an answer says while it is written, and at last its value; see `Run.drafts`. Else as `stream_sync`.

        Raises `ConfigError` without an `output_type`, and at the end `RunFailed` if the run's status is `error`.
        """
        run = self.run_streaming(goal, session_id=session_id, criteria=criteria, extensions=extensions, deps=deps)
        drafts = run.drafts()
        return iterate_on(lambda: drafts)

    def resume(
        self,
        session_id: str,
        answers: Mapping[str, object] | None = None,
        *,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> Run:
        """Go on with a session's last goal from its log, with answers to what it asked; see `RuntimeRunner.resume`."""
        return self.runner_of(session_id).resume(session_id, answers=answers, extensions=extensions, deps=deps)

    def resume_sync(
        self,
        session_id: str,
        answers: Mapping[str, object] | None = None,
        *,
        extensions: Mapping[str, object] | None = None,
        deps: object = None,
    ) -> RunResult:
        """As `await agent.resume(…)`, for scripts; in a thread of its own where a loop runs here."""
        return block_on(self.resume(session_id, answers, extensions=extensions, deps=deps).result)

    async def pending(self, session_id: str) -> tuple[PendingRequest, ...]:
        """The open requests of a session, the oldest first, read from its log; see `RuntimeRunner.pending`."""
        return await self.runner_of(session_id).pending(session_id)

    def interrupt(self, session_id: str | None = None) -> None:
        """Stop the run of this session, or every run of this agent, promptly; status `user_abort`. From any thread."""
        for runner in self._runners():
            runner.interrupt(session_id)

    @property
    def runner(self) -> RuntimeRunner:
        """The runner of runs without a session id: for harnesses, and for what the short form leaves out."""
        return self.runner_of(None)

    def runner_of(self, session_id: str | None) -> RuntimeRunner:
        """The runner that serves this session: that of those in memory, or that of the durable ones.

        The latter is made when it is first needed. Raises `ConfigError` where no folder for it can be found.
        """
        in_memory = session_id is None or session_id in self._memory
        if in_memory and self._options.session_log is None:
            return self._passing
        with self._lock:
            if self._kept is None:
                from deepstrike.sessions.places import open_log

                self._kept = RuntimeRunner(replace(self._options, session_log=open_log(), durability=self._durability))
            return self._kept

    def as_tool(self, name: str, description: str) -> Tool[..., object]:
        """This agent as a tool of another one: a call puts it to work as a sub-agent of the run that calls it.

        It keeps its model, tools, instructions and output type; its session, the rules, what is left of the budgets and
        whoever answers questions are the calling run's. The tool takes a `task`; `description` tells the other model
        what this agent is good for. Raises `ConfigError` for a wrong name or description.
        """
        from deepstrike.agents import as_tool

        return as_tool(self._passing, name, description)

    async def aclose(self) -> None:
        """Interrupt what still runs, close MCP servers and connections of this loop. It can be used again."""
        for runner in self._runners():
            await runner.aclose()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _runners(self) -> list[RuntimeRunner]:
        with self._lock:
            return [self._passing] if self._kept is None else [self._passing, self._kept]


def _check_keywords(options: Mapping[str, object]) -> None:
    for name in options.keys() & _HERE.keys():
        raise ConfigError(f"Agent takes {name} as {_HERE[name]}")
    known = {field.name for field in fields(RuntimeOptions)} - _HERE.keys()
    check_names("Agent", options, known | {"model", "tools", "instructions"})


def _provider(model: str | LLMProvider | None) -> LLMProvider:
    if model is not None and not isinstance(model, str):
        if isinstance(model, type) or not callable(getattr(model, "stream", None)):
            what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
            raise ConfigError(f'model must be an id, as in "openai:gpt-5-mini", or a provider object, not {what}')
        return model
    choice = choose(model)
    provider = choice.provider()
    if model is None:
        id_ = f" ({provider.info.id})" if isinstance(provider, Provider) and provider.info.id not in choice.name else ""
        also = "; it is no language model" if choice.name == "demo" else ""
        _log.warning("model: %s%s, as %s%s; name one to choose", choice.name, id_, choice.why, also)
    return provider


def _plane(tools: Iterable[ToolSource], frame: FrameType) -> ExecutionPlane:
    """All tools on one plane; functions are taken as if `tool(function)` stood in `frame`."""
    _require_list(tools)
    local, planes = LocalExecutionPlane(), list[ExecutionPlane]()
    for each in tools:
        if isinstance(each, Agent):
            raise ConfigError('an agent is a tool by a name: tools=[agent.as_tool("name", "what it is good for")]')
        if isinstance(each, ExecutionPlane) and not isinstance(each, type):
            planes.append(each)
        else:
            local.register(tool_in(frame, each))
    if local.specs():
        planes.insert(0, local)
    return planes[0] if len(planes) == 1 else CompositePlane(*planes)


def _require_list(tools: object) -> None:
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise ConfigError(f"tools must be a list of tools, as in tools=[add], not {type(tools).__name__}")


def _checked_durability(durability: Literal["os", "disk"] | None) -> Literal["os", "disk"] | None:
    if durability not in ("os", "disk", None):
        raise ConfigError(f'durability must be "os", "disk" or None, not {durability!r}')
    return durability
