"""What the run tests share: tools that can be watched, and a runner around a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, TypeVar

from deepstrike import (
    DoneEvent,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    PermissionRequestEvent,
    RuntimeOptions,
    RuntimeRunner,
    SessionLog,
    StreamEvent,
    ToolSuspendEvent,
    tool,
)
from deepstrike.providers.base import Finish, LLMProvider, ModelEvent, ModelRequest, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Turn, UserBlock

E = TypeVar("E")
Reply = Sequence[ModelEvent]


@tool
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


def say(text: str) -> Reply:
    """A reply that is text and nothing else."""
    return [TextDelta(text), Finish("stop")]


def call(name: str, arguments: str = "{}", call_id: str = "c1") -> ToolCall:
    """One tool call."""
    return ToolCall(call_id, name, arguments)


def calls(*wanted: ToolCall) -> Reply:
    """A reply that is tool calls and nothing else."""
    return [*wanted, Finish("tool_calls")]


class Script:
    """A provider that gives one reply after the other and keeps the requests' turns as they were."""

    def __init__(self, *replies: Reply | BaseException) -> None:
        self._replies = list(replies)
        self.turns: list[list[Turn]] = []
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        self.turns.append(list(request.turns))
        reply = self._replies[min(len(self.turns), len(self._replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        for event in reply:
            yield event


class Endless:
    """A provider whose text never ends; `closed` tells that it was let go of."""

    def __init__(self, pause: float = 0.001) -> None:
        self.pause = pause
        self.closed = asyncio.Event()
        self.started = asyncio.Event()

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.started.set()
        try:
            while True:
                yield TextDelta("on and on ")
                await asyncio.sleep(self.pause)
        finally:
            self.closed.set()


def runner_of(
    provider: LLMProvider,
    *tools: Callable[..., object],
    log: SessionLog | None = None,
    max_turns: int = 5,
    timeout_ms: int | None = None,
    max_tokens: int = 100_000,
    max_total_tokens: int | None = None,
    max_parallel_tools: int = 8,
    system_prompt: str = "",
    on_tool_suspend: Callable[[ToolSuspendEvent], object] | None = None,
    on_permission_request: Callable[[PermissionRequestEvent], object] | None = None,
    governance: Governance | None = None,
    on_tool_error: Literal["continue", "cancel_siblings"] = "continue",
) -> RuntimeRunner:
    """A runner around `provider` with these tools."""
    return RuntimeRunner(
        RuntimeOptions(
            provider=provider,
            session_log=log if log is not None else InMemorySessionLog(),
            execution_plane=LocalExecutionPlane().register(*tools),
            max_tokens=max_tokens,
            max_turns=max_turns,
            timeout_ms=timeout_ms,
            max_total_tokens=max_total_tokens,
            max_parallel_tools=max_parallel_tools,
            system_prompt=system_prompt,
            on_tool_suspend=on_tool_suspend,
            on_permission_request=on_permission_request,
            governance=governance,
            on_tool_error=on_tool_error,
        )
    )


async def copied(
    log: SessionLog, session_id: str, records: int | None = None, *, into: InMemorySessionLog | None = None
) -> InMemorySessionLog:
    """A log that holds the first `records` of a session, all of them without a number: as another process finds it."""
    copy = InMemorySessionLog() if into is None else into
    owner = await copy.acquire(session_id)
    await copy.append(session_id, (await log.read(session_id))[:records], 0, owner=owner)
    await copy.release(session_id, owner)
    return copy


async def kinds_of(log: SessionLog, session_id: str) -> list[str]:
    """The kinds of a session's records, in order."""
    return [json.loads(line)["event"]["type"] for line in await log.read(session_id)]


async def events_of(stream: AsyncIterator[StreamEvent] | object) -> list[StreamEvent]:
    """All events of a run."""
    assert hasattr(stream, "__aiter__")
    return [event async for event in stream]


def only(kind: type[E], events: Sequence[object]) -> list[E]:
    """The events of one kind, in order."""
    return [event for event in events if isinstance(event, kind)]


def done_of(events: Sequence[StreamEvent]) -> DoneEvent:
    """The last event, which must be the one and only DoneEvent."""
    assert len(only(DoneEvent, events)) == 1
    last = events[-1]
    assert isinstance(last, DoneEvent)
    return last


def assert_paired(turns: Sequence[Turn]) -> None:
    """Every call has exactly one result, directly behind its assistant block and in call order; no id is empty."""
    position = 0
    while position < len(turns):
        turn = turns[position]
        position += 1
        assert not isinstance(turn, ResultBlock), "a result without its call"
        if isinstance(turn, AssistantBlock):
            ids = [part.id for part in turn.parts if isinstance(part, CallBlock)]
            answered = []
            while position < len(turns) and isinstance(behind := turns[position], ResultBlock):
                answered.append(behind.call_id)
                position += 1
            assert answered == ids
            assert all(ids)
    assert not turns or not isinstance(turns[-1], AssistantBlock), "a request ends with assistant text"


def result_texts(turns: Sequence[Turn]) -> list[str]:
    """The texts of all results, in order."""
    return [
        part.text for turn in turns if isinstance(turn, ResultBlock) for part in turn.parts if hasattr(part, "text")
    ]


def user_texts(turns: Sequence[Turn]) -> list[str]:
    """The texts of all user-side blocks, in order."""
    return [part.text for turn in turns if isinstance(turn, UserBlock) for part in turn.parts if hasattr(part, "text")]
