"""Tools whose calls are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
from toolcalls import CONTEXT, Shown

from deepstrike import (
    LocalExecutionPlane,
    RetryEvent,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    Suspend,
    ToolContext,
    ToolError,
    ToolResultEvent,
    tool,
)
from deepstrike.errors import ConfigError
from deepstrike.execution.base import Invocation
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.testing import ManualClock
from deepstrike.tools.repeating import run_repeatedly
from deepstrike.wire.message import Text, ToolResult

if TYPE_CHECKING:
    from deepstrike.tools.definition import Tool


class Flaky:
    """Fails so often, each time with the next error, and keeps the keys that it was called with."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.keys: list[str] = []

    async def fetch(self, context: ToolContext) -> str:
        self.keys.append(context.idempotency_key)
        if self.errors:
            raise self.errors.pop(0)
        return "fetched"


async def attempt(made: Tool[..., object], waits: int = 0) -> tuple[ToolResult, list[tuple[int, int, str]]]:
    """The result, and what was told of the repetitions; the clock goes on whenever somebody waits for it."""
    told: list[tuple[int, int, str]] = []
    with ManualClock() as clock:
        call = Invocation(
            made.name, "{}", CONTEXT, Shown().show, again=lambda tried, delay, why: told.append((tried, delay, why))
        )
        task = asyncio.ensure_future(run_repeatedly(made, call))
        for _ in range(waits):
            await clock.advance(8)
        return await task, told


async def test_given_a_tool_that_fails_twice_when_it_may_be_repeated_then_it_succeeds_with_the_same_key() -> None:
    flaky = Flaky(OSError("reset"), TimeoutError())
    result, told = await attempt(tool(effect="idempotent", retries=3)(flaky.fetch), waits=2)

    assert result == ToolResult((Text("fetched"),))
    assert told == [(1, 500, "OSError: reset"), (2, 1000, "TimeoutError")]
    assert flaky.keys == [CONTEXT.idempotency_key] * 3


async def test_given_a_tool_that_always_fails_when_its_retries_are_used_up_then_the_last_error_says_how_often() -> None:
    flaky = Flaky(*(OSError(f"no {n}") for n in range(9)))
    result, told = await attempt(tool(effect="read", retries=5)(flaky.fetch), waits=5)

    assert result == ToolResult((Text("OSError: no 5\n[tried 6 times]"),), "exception")
    assert [delay for _, delay, _ in told] == [500, 1000, 2000, 4000, 8000]


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ToolError("no such city"), 1),
        (ToolError("busy", retryable=True), 2),
        (ConfigError("wrong"), 1),
        (SystemExit(3), 1),
        (ValueError("x"), 2),
    ],
)
async def test_given_an_error_when_it_is_raised_then_only_what_may_pass_is_tried_again(
    error: BaseException, tries: int
) -> None:
    flaky = Flaky(error)
    await attempt(tool(effect="read", retries=1)(flaky.fetch), waits=tries - 1)

    assert len(flaky.keys) == tries


async def test_given_a_tool_that_is_too_slow_when_it_is_repeated_then_each_try_has_its_time_and_a_fresh_context() -> (
    None
):
    seen: list[ToolContext] = []

    async def slow(context: ToolContext) -> str:
        seen.append(context)
        if len(seen) == 1:
            await asyncio.sleep(600)
        return f"cancelled: {context.cancelled}"

    made = tool(effect="read", retries=1, timeout_ms=2000)(slow)
    told: list[int] = []
    with ManualClock() as clock:
        own = ToolContext("session", "call-1", "key-1", "agent-1")  # that which tests share may have been cancelled
        call = Invocation("slow", "{}", own, Shown().show, again=lambda tried, *_: told.append(tried))
        task = asyncio.ensure_future(run_repeatedly(made, call))
        await clock.advance(2)
        await clock.advance(1)
        result = await task

    assert (result, told) == (ToolResult((Text("cancelled: False"),)), [1])
    assert [context.cancelled for context in seen] == [True, False]


async def test_given_a_wait_before_a_repetition_when_cancelled_then_it_ends_at_once() -> None:
    flaky = Flaky(OSError("a"), OSError("b"))
    told = asyncio.Event()
    with ManualClock():
        call = Invocation("fetch", "{}", CONTEXT, Shown().show, again=lambda *_: told.set())
        task = asyncio.ensure_future(run_repeatedly(tool(effect="read", retries=2)(flaky.fetch), call))
        await told.wait()
        task.cancel()
        await asyncio.wait({task})

    assert (task.cancelled(), len(flaky.keys)) == (True, 1)


async def test_given_a_tool_that_has_asked_when_it_fails_then_it_is_not_tried_again() -> None:
    calls: list[int] = []

    @tool(effect="read", retries=3)
    async def asks() -> AsyncIterator[str | Suspend]:
        """Ask."""
        calls.append(1)
        yield Suspend("sure?")
        raise OSError("afterwards")

    async def answer(_payload: object) -> object:
        return True

    result = await run_repeatedly(asks, Invocation("asks", "{}", CONTEXT, Shown().show, answer))

    assert (result.error_kind, len(calls)) == ("exception", 1)


def test_given_a_tool_that_may_be_done_once_only_when_retries_are_wanted_then_it_is_refused() -> None:
    made = tool(effect="read", retries=1)(Flaky().fetch)

    assert tool(name="other")(made).retries == 1
    with pytest.raises(ConfigError, match=r'retries=1 would do twice what effect="once" says is done once'):
        tool(retries=1)(Flaky().fetch)
    with pytest.raises(ConfigError, match='say effect="read" or effect="idempotent"'):
        tool(effect="once")(made)


@pytest.mark.parametrize("wrong", [-1, 11, True, 1.5, "2"])
def test_given_retries_that_are_no_small_number_when_a_tool_is_made_then_the_error_says_so(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="give a whole number from 0 to 10"):
        tool(effect="read", retries=wrong)


async def test_given_a_tool_that_is_repeated_when_run_then_the_stream_shows_each_try_and_the_log_one_result() -> None:
    flaky = Flaky(OSError("reset"))
    model = ScriptedProvider([[ToolCall("c1", "fetch", "{}"), Finish("tool_calls")], "done"])
    plane = LocalExecutionPlane().register(tool(effect="read", retries=2)(flaky.fetch))
    with ManualClock() as clock:
        runner = RuntimeRunner(RuntimeOptions(provider=model, execution_plane=plane))
        events = []
        async for event in runner.run_streaming("go"):
            events.append(event)
            if isinstance(event, RetryEvent):
                await clock.advance(0.5)

    assert [event for event in events if isinstance(event, RetryEvent)] == [
        RetryEvent(1, 500, "OSError: reset", "c1", "fetch")
    ]
    assert [event.content for event in events if isinstance(event, ToolResultEvent)] == ["fetched"]
