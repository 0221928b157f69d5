"""What the tests of sub-agents share: models that answer by what they are asked, and runners with sub-agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from deepstrike import (
    AgentEvent,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    ModelRequest,
    PermissionRequestEvent,
    RuntimeOptions,
    RuntimeRunner,
    SessionLog,
    StreamEvent,
    ToolSuspendEvent,
)
from deepstrike.agents import AgentRunSpec, SubAgents
from deepstrike.providers.base import Finish, ModelEvent, ModelInfo, Provider, ToolCall
from deepstrike.records import decode_record
from deepstrike.stream import TextDelta
from deepstrike.wire.event import Started
from deepstrike.wire.message import ResultBlock, Text, Usage, UserBlock
from deepstrike.wire.policy import Config

Reply = str | Sequence[ModelEvent] | BaseException
Play = Sequence[Reply | Callable[[ModelRequest], Reply]]


def goal_of(request: ModelRequest) -> str:
    """The goal that a request is about."""
    first = request.turns[0]
    assert isinstance(first, UserBlock)
    return "".join(part.text for part in first.parts if isinstance(part, Text))


def results_of(request: ModelRequest) -> list[str]:
    """The texts of the results that it has, in order."""
    parts = (part for turn in request.turns if isinstance(turn, ResultBlock) for part in turn.parts)
    return [part.text for part in parts if isinstance(part, Text)]


class Cast(Provider):
    """A model that plays many agents: by goal a list of replies, one for each turn of that agent.

    `requests` holds every request as it came, by goal. What is asked of a goal without a part fails.
    """

    dialect = "cast"

    def __init__(self, parts: Mapping[str, Play]) -> None:
        self.parts = {goal: list(replies) for goal, replies in parts.items()}
        self.requests: list[tuple[str, ModelRequest]] = []
        self.info = ModelInfo("cast")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next reply of the agent that has this goal."""
        goal = goal_of(request)
        turn = sum(1 for other, _ in self.requests if other == goal)
        self.requests.append((goal, request))
        reply = self.parts[goal][turn]
        said = reply(request) if callable(reply) else reply
        if isinstance(said, BaseException):
            raise said
        events: list[ModelEvent] = [TextDelta(said)] if isinstance(said, str) else list(said)
        await asyncio.sleep(0)
        for event in events:
            yield event
        if not any(isinstance(event, Usage) for event in events):
            yield Usage(10, 1)
        yield Finish("tool_calls" if any(isinstance(event, ToolCall) for event in events) else "stop")

    def asked(self, goal: str) -> list[ModelRequest]:
        """The requests of the agent that has this goal."""
        return [request for other, request in self.requests if other == goal]


def delegates(task: str, role: str | None = None, tools: Sequence[str] | None = None, call_id: str = "d") -> ToolCall:
    """A call that delegates a task."""
    arguments = {"task": task, "role": role, "tools": tools}
    given = {name: value for name, value in arguments.items() if value is not None}
    return ToolCall(call_id, "delegate", json.dumps(given))


def runner_with(
    provider: Provider,
    *tools: Callable[..., object],
    sub_agents: bool | Sequence[AgentRunSpec] | SubAgents | None = True,
    log: SessionLog | None = None,
    max_turns: int = 25,
    max_total_tokens: int | None = None,
    timeout_ms: int | None = None,
    max_parallel_tools: int = 8,
    governance: Governance | None = None,
    on_permission_request: Callable[[PermissionRequestEvent], object] | None = None,
    on_tool_suspend: Callable[[ToolSuspendEvent], object] | None = None,
) -> RuntimeRunner:
    """A runner whose model may delegate."""
    return RuntimeRunner(
        RuntimeOptions(
            provider=provider,
            session_log=log if log is not None else InMemorySessionLog(),
            execution_plane=LocalExecutionPlane().register(*tools),
            sub_agents=sub_agents,
            max_turns=max_turns,
            max_total_tokens=max_total_tokens,
            timeout_ms=timeout_ms,
            max_parallel_tools=max_parallel_tools,
            governance=governance,
            on_permission_request=on_permission_request,
            on_tool_suspend=on_tool_suspend,
        )
    )


def of_agents(events: Sequence[StreamEvent]) -> dict[tuple[str, ...], list[StreamEvent]]:
    """The events of sub-agents, by path."""
    found: dict[tuple[str, ...], list[StreamEvent]] = {}
    for event in events:
        if isinstance(event, AgentEvent):
            found.setdefault(event.path, []).append(event.event)
    return found


async def config_of(log: SessionLog, session_id: str) -> Config:
    """What a session began with."""
    event = decode_record((await log.read(session_id))[0]).event
    assert isinstance(event, Started)
    return event.config
