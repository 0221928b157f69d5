"""A tool's questions as a plane sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from toolcalls import CONTEXT, Shown, error_of, invocation, text_of

from deepstrike import Suspend, tool
from deepstrike.execution.base import Invocation
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.testing import ManualClock
from deepstrike.tools.running import run_tool
from deepstrike.tools.suspension import Parked
from deepstrike.wire.message import ToolResult

LIMITS = [None, 1_000]


class Caller:
    """Puts the questions of a tool, and gives the answers in order."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[object] = []
        self._answers = list(answers)

    async def suspend(self, payload: object) -> object:
        self.asked.append(payload)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def run(function: object, caller: Caller, timeout_ms: int | None = None) -> ToolResult:
    """Run a tool whose questions go to `caller`."""
    assert callable(function)
    made = tool(timeout_ms=timeout_ms)(function)
    return await run_tool(made, Invocation("tested", "{}", CONTEXT, Shown().show, caller.suspend))


@pytest.mark.parametrize("timeout_ms", LIMITS)
async def test_given_answers_when_a_tool_asks_then_each_comes_back_where_it_was_asked(timeout_ms: int | None) -> None:
    async def twice() -> AsyncIterator[str | Suspend]:
        first = yield Suspend("one?")
        yield f"{first}, "
        second = yield Suspend({"two": 2})
        yield f"{second}"

    caller = Caller("a", "b")

    assert text_of(await run(twice, caller, timeout_ms)) == "a, b"
    assert caller.asked == ["one?", {"two": 2}]


async def test_given_a_plain_item_when_it_is_yielded_then_nothing_comes_back() -> None:
    got: list[object] = []

    async def items() -> AsyncIterator[object]:
        got.append((yield "text"))
        got.append((yield Suspend()))
        got.append((yield "more"))

    await run(items, Caller("answer"))

    assert got == [None, "answer", None]


@pytest.mark.parametrize("timeout_ms", LIMITS)
async def test_given_nobody_to_answer_when_a_tool_asks_then_it_is_closed_and_parked_gets_out(
    timeout_ms: int | None,
) -> None:
    closed = asyncio.Event()

    async def asks() -> AsyncIterator[Suspend]:
        try:
            yield Suspend("?")
        finally:
            await asyncio.sleep(0)
            closed.set()

    with pytest.raises(Parked) as parked:
        await run(asks, Caller(Parked('"?"')), timeout_ms)

    assert (parked.value.payload, closed.is_set()) == ('"?"', True)


async def test_given_a_question_that_fails_when_a_tool_asks_then_that_is_its_result_and_it_is_closed() -> None:
    closed: list[bool] = []

    async def asks() -> AsyncIterator[Suspend]:
        try:
            yield Suspend("?")
        finally:
            closed.append(True)

    assert error_of(await run(asks, Caller(ValueError("no"))))[1] == "ValueError: no"
    assert closed == [True]


async def test_given_a_plane_alone_when_a_tool_asks_then_the_error_says_what_can_suspend() -> None:
    async def asks() -> AsyncIterator[Suspend]:
        yield Suspend("?")

    plane = LocalExecutionPlane().register(asks)
    asked = invocation("{}")
    result = await plane.execute(Invocation("asks", asked.args_text, asked.context, asked.show))

    assert error_of(result)[0] == "exception"
    assert "only an async generator tool can suspend" in error_of(result)[1]


async def test_given_an_iterator_that_is_no_generator_when_it_asks_then_it_is_misplaced() -> None:
    class Items:
        def __aiter__(self) -> Items:
            return self

        async def __anext__(self) -> Suspend:
            return Suspend("?")

    def items() -> Items:
        return Items()

    assert "only an async generator tool can suspend" in error_of(await run(items, Caller("never")))[1]


async def test_given_a_timeout_when_a_tool_waits_for_an_answer_then_its_time_stands_still() -> None:
    async def slow() -> AsyncIterator[str | Suspend]:
        await clock.sleep(0.6)
        yield Suspend("?")
        await clock.sleep(pauses.pop(0))
        yield "done"

    class Late(Caller):
        async def suspend(self, payload: object) -> object:
            await clock.sleep(60)
            return await super().suspend(payload)

    pauses = [0.3, 0.5]
    with ManualClock() as clock:
        for kind in ("", "timeout"):
            task = asyncio.ensure_future(run(slow, Late("yes"), 1_000))
            await clock.advance(70)
            assert (await task).error_kind == kind
