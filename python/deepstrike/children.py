"""Sub-agents at work: the run of one, made of the run that it serves and of what it is itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from deepstrike.conduct import Conduct
from deepstrike.errors import ConfigError, SessionError
from deepstrike.execution.filtered import FilteredExecutionPlane
from deepstrike.execution.unknown import unknown_tool
from deepstrike.host.folding import asked
from deepstrike.host.recent import Recent
from deepstrike.kernel import glob
from deepstrike.records import decode_record
from deepstrike.secrets import bound
from deepstrike.wire.agents import Agents, Parent
from deepstrike.wire.event import Started
from deepstrike.wire.input import Resume, Start
from deepstrike.wire.message import Text
from deepstrike.wire.policy import Attended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from deepstrike.conduct import Task
    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.agents import AgentCall, Child, Household
    from deepstrike.host.crew import Means
    from deepstrike.options import RuntimeOptions
    from deepstrike.roles import AgentRunSpec, SubAgents
    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.agents import Grant
    from deepstrike.wire.policy import Config, Limits

    # What an agent would do with a goal in a session and with these extensions, were it a root.
    Draft = Callable[[str, str, Mapping[str, object]], Awaitable[Task]]

_ALONE: Final = (
    "You work on one task for another agent. It sees nothing but your final answer: put into it all that it needs, and "
    "say so if the task cannot be done."
)
_LIMITS: Final = ("max_tokens", "max_turns", "max_total_tokens", "max_cost_usd", "timeout_ms")


@dataclass(frozen=True, slots=True)
class DraftedAgent:
    """A kind of sub-agent that is made of what it would do as a root.

    One that `inherits` gets only tools that its parent's run has; another one has those of its own. One that `extends`
    talks to its parent's model with the extensions of its parent's run. `says` is a role that the model named.
    """

    draft: Draft
    inherits: bool = False
    extends: bool = False
    says: str = ""

    def child(self, household: Household, call: AgentCall) -> Child:
        """One of them, for this call (host/agents.py)."""

        return Conduct(call.session_id, lambda: self.task(household, call))

    async def task(self, household: Household, call: AgentCall) -> Task:
        """What it does. The log says whether it begins or goes on: nobody but its parent's owner writes to it."""
        extensions = household.means.extensions if self.extends else {}
        task = await self.draft(call.session_id, call.task, extensions)
        goes_on = await asked(call.session_id, household.log.latest_seq(call.session_id)) >= 0
        if goes_on:
            _require_same(task, household, await asked(call.session_id, household.log.read(call.session_id)))
        return bounded(task, household, self._narrowed(household, call), goes_on=goes_on, says=self.says)

    def _narrowed(self, household: Household, call: AgentCall) -> AgentCall:
        """The call with the tools that it leaves the sub-agent; None where it leaves it all of its own."""
        if not self.inherits:
            return call
        only, names = call.grant.only, (tool.name for tool in household.config.tools)
        there = tuple(name for name in names if not only or any(glob(pattern, name) for pattern in only))
        return replace(call, tools=there if call.tools is None else tuple(filter(there.__contains__, call.tools)))


def _require_same(task: Task, household: Household, records: Sequence[bytes]) -> None:
    """What goes on must be this task: a session that was deleted may have left the sessions of its sub-agents."""
    begun = decode_record(records[0]).event if records else None
    if not isinstance(begun, Started) or not isinstance(task.first, Start):
        return
    parent = begun.config.agents.parent
    if parent is None or parent.session != household.config.session or _goal(begun) == _goal(task.first):
        return
    raise SessionError(
        f"session {task.session_id!r} was begun for another task, by a session that is no more: delete it, "
        "and this task can begin",
        code="other_task",
    )


def _goal(of: Started | Start) -> str:
    """The texts of a goal, without secrets: a log holds none."""
    return bound().hidden("\n".join(part.text for part in of.goal if isinstance(part, Text)))


def bounded(task: Task, household: Household, call: AgentCall, *, goes_on: bool, says: str = "") -> Task:
    """What a sub-agent does of `task`: in its parent's log, under its parent's rules, within what it is granted."""
    governance = household.governance or task.governance
    if task.governance not in (None, governance):
        raise ConfigError("an agent and the tool that it is of another one have two Governance objects: share one")
    means = _means(task.means, household.means, call)
    config = _config(task.first.config, household, call, means)
    if says:
        config = msgspec.structs.replace(config, system=f"{config.system} Your role: {says}")
    first = Resume(config) if goes_on else msgspec.structs.replace(task.first, config=config)
    return replace(
        task,
        first=first,
        answers=call.answers,
        log=household.log,
        recent=Recent(household.vault),
        means=means,
        governance=governance,
        perform=household.perform,
    )


def _means(own: Means, parents: Means, call: AgentCall) -> Means:
    plane = own.plane if call.tools is None else FilteredExecutionPlane(own.plane, _exactly(call.tools))
    return replace(
        own,
        plane=plane,
        deps=parents.deps,
        on_tool_suspend=own.on_tool_suspend or parents.on_tool_suspend,
        on_permission_request=own.on_permission_request or parents.on_permission_request,
    )


def _config(own: Config, household: Household, call: AgentCall, means: Means) -> Config:
    above = household.config
    tools = own.tools if call.tools is None else tuple(tool for tool in own.tools if tool.name in call.tools)
    agents = Agents(
        own.agents.delegate,
        max(0, min(own.agents.depth, above.agents.depth - 1)),
        own.agents.children,
        Parent(above.session, (*household.path, *call.names)),
    )
    attended = Attended(means.on_permission_request is not None, means.on_tool_suspend is not None)
    limits = within(own.limits, call.grant)
    return msgspec.structs.replace(own, tools=tools, agents=agents, attended=attended, limits=limits)


def within(limits: Limits, grant: Grant) -> Limits:
    """Limits no higher than what was granted."""
    return msgspec.structs.replace(
        limits,
        max_turns=min(limits.max_turns, grant.turns),
        max_total_tokens=_lower(limits.max_total_tokens, grant.tokens),
        max_cost=_lower(limits.max_cost, grant.cost),
        timeout_ms=_lower(limits.timeout_ms, grant.time_ms),
    )


def derived(
    options: RuntimeOptions, plane: ExecutionPlane, log: SessionLog, spec: AgentRunSpec | None
) -> RuntimeOptions:
    """The options of a sub-agent of this role, of one without a role with None: its parent's, narrowed.

    Raises `ConfigError` for what does not fit together.
    """
    changed: dict[str, object] = {
        "execution_plane": plane,
        "session_log": log,
        "durability": None,
        "system_prompt": _ALONE,
        "initial_memory": (),
        "output_type": None,
        "output_mode": "auto",
    }
    if spec is None:
        return replace(options, **changed)  # type: ignore[arg-type]
    named = f"{_ALONE} Your role: {spec.role}"
    changed["system_prompt"] = named if spec.system_prompt is None else spec.system_prompt
    if spec.tools is not None:
        changed["execution_plane"] = FilteredExecutionPlane(plane, _exactly(spec.tools))
    if spec.provider is not None:
        changed |= {"provider": spec.provider, "extensions": {}}
    if spec.extensions is not None:
        changed["extensions"] = spec.extensions
    for name in _LIMITS:
        changed[name] = _lower_of(vars(options)[name], vars(spec)[name])
    try:
        return replace(options, **changed)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"sub-agent {spec.role!r}: {error.message}") from error


def catalogue(sub_agents: SubAgents | None) -> tuple[str, ...]:
    """What the model is told of the roles that it may delegate to; () where it names them itself."""
    if sub_agents is None or not sub_agents.roles:
        return ()
    told = (f"{spec.role}: {spec.description}" if spec.description else spec.role for spec in sub_agents.roles)
    return ("\n- ".join(("Roles that delegate takes:", *told)),)


def missing_tools(wanted: Iterable[str], there: Iterable[str]) -> str | None:
    """What is said of the first tool that a sub-agent's parent has not."""
    there = set(there)
    for name in wanted:
        if name not in there:
            return f"{unknown_tool(name, there)}. A sub-agent gets only tools of its parent"
    return None


def _exactly(names: Iterable[str]) -> Callable[[str], bool]:
    allowed = frozenset(names)
    return lambda name: name in allowed


def _lower(limit: int | None, granted: int | None) -> int | None:
    return min((each for each in (limit, granted) if each is not None), default=None)


def _lower_of(limit: float | None, own: float | None) -> float | None:
    return min((each for each in (limit, own) if each is not None), default=None)
