"""Where runs are made: what a runner's options come to, as the task of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.children import catalogue, derived, missing_tools
from deepstrike.conduct import Task
from deepstrike.errors import ConfigError
from deepstrike.execution.lifetime import Opening, notices, open_plane
from deepstrike.host.crew import Means
from deepstrike.host.post import post_of
from deepstrike.host.recent import Recent
from deepstrike.kernel import META_TOOLS, encode_input
from deepstrike.memory.shown import preloaded
from deepstrike.output.way import way_of
from deepstrike.providers.base import Provider
from deepstrike.roles import SubAgents
from deepstrike.staff import Staff
from deepstrike.text import distinct, well_formed
from deepstrike.wire.agents import Agents
from deepstrike.wire.policy import Attended, Config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deepstrike.children import Draft
    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.agents import Child
    from deepstrike.host.library import Library
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.requests import Given
    from deepstrike.options import RuntimeOptions
    from deepstrike.output.way import Way
    from deepstrike.roles import AgentRunSpec
    from deepstrike.stream import RunResult
    from deepstrike.wire.input import Resume, Start
    from deepstrike.wire.message import ToolSpec

    Drafts = Callable[[AgentRunSpec | None], Draft]
    Perform = Callable[[Child, Outbox], Awaitable[RunResult]]


class Workshop:
    """Makes the tasks of one runner. It holds what all its runs share, and no state of a run.

    Raises `ConfigError` for sub-agents that do not fit the options.
    """

    def __init__(self, options: RuntimeOptions, drafts: Drafts, perform: Perform) -> None:
        """`drafts` gives what a role would do as a root, `perform` carries a run out where an interrupt finds it."""
        self.options = options
        self.log = options.log()
        self.plane = options.plane()
        self.form = options.form()
        self.library = options.library()
        self.post = post_of(options.signal_source)
        self._recent = Recent()
        self._perform = perform
        self._sub_agents = options.roster()
        self._staff: Staff | None = None
        if self._sub_agents is not None:
            self._staff = Staff(self._sub_agents, drafts, options.sub_agent_harness)
        for spec in self.roles:
            derived(options, self.plane, self.log, spec)

    @property
    def roles(self) -> tuple[AgentRunSpec, ...]:
        """The sub-agents that have a role of their own."""
        return () if self._sub_agents is None else self._sub_agents.roles

    @property
    def opens_late(self) -> bool:
        """Whether what a run has can be known only when it begins."""
        return isinstance(self.plane, Opening) or self.library.skills is not None

    def require_tools(self, spec: AgentRunSpec) -> None:
        """Raises `ConfigError` where the plane has not all tools of this role."""
        missing = missing_tools(spec.tools or (), (tool.name for tool in self.plane.specs()))
        if missing is not None:
            raise ConfigError(f"sub-agent {spec.role!r}: {missing}")

    async def opened(self, extensions: Mapping[str, object]) -> Library:
        """What stands beside the tools, read anew, with the plane open."""
        if isinstance(self.plane, Opening):
            await open_plane(self.plane)
        return await self.library.opened(self.options.model_info().id, self.options.limits(extensions).window)

    def task(
        self,
        session: str,
        first: Callable[[Config], Start | Resume],
        answers: Mapping[str, Given],
        extensions: Mapping[str, object],
        deps: object,
        library: Library,
    ) -> Task:
        """What a run is about that begins with `first` of its configuration. Raises `ConfigError`."""
        way = self._way()
        begun = first(self._config(session, extensions, way, library))
        _require_crossable(begun)
        means = self._means(extensions, deps, way)
        return Task(
            session,
            begun,
            answers,
            self.log,
            self._recent,
            means,
            library,
            self.post,
            self.options.governance,
            self.form,
            self._perform,
            notices(self.plane),
        )

    def _way(self) -> Way | None:
        if self.form is None:
            return None
        return way_of(self.form, self.options.output_mode, self.options.provider, self.plane.specs())

    def _means(self, extensions: Mapping[str, object], deps: object, way: Way | None) -> Means:
        options = self.options
        dialect = options.provider.dialect if isinstance(options.provider, Provider) else ""
        return Means(
            options.provider,
            self.plane,
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
            summarizer=options.summarizer,
        )

    def _config(self, session: str, extensions: Mapping[str, object], way: Way | None, library: Library) -> Config:
        system, tools = self.options.system_prompt, _tools(self.plane)
        limits = self.options.limits(extensions)
        sources = library.sources([spec.name for spec in tools])
        roles = catalogue(self._sub_agents)
        preload = (*preloaded(self.options.initial_memory), *library.catalogue, *roles)
        if way is not None:
            system, tools = way.system(system), (*tools, *way.tools)
        return Config(
            session=distinct(session),
            system=well_formed(system),
            preload=tuple(map(well_formed, preload)),
            tools=tools,
            policy=self.options.policy(),
            limits=limits,
            model=self.options.model(extensions),
            placement=self.options.state_placement,
            attended=Attended(
                approvals=self.options.on_permission_request is not None,
                suspensions=self.options.on_tool_suspend is not None,
            ),
            agents=_agents(self._sub_agents, tools),
            sources=sources,
            summaries=self.options.summarizer is not None,
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
