"""Running a tool: failures are results, cancellation is not swallowed, streams are shown."""

from __future__ import annotations

import asyncio
import builtins
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import pytest
from pydantic import Field
from toolcalls import Shown, as_tool, called, error_of, invocation, text_of

from deepstrike.clock import use_clock
from deepstrike.errors import ToolError
from deepstrike.testing.clock import ManualClock
from deepstrike.tools.context import ToolContext
from deepstrike.tools.decorator import tool
from deepstrike.tools.failures import failure_of
from deepstrike.tools.running import run_tool
from deepstrike.tools.threads import abandoned_threads
from deepstrike.wire.message import Image, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CAN_ASK = sys.version_info >= (3, 11)


async def test_given_an_exception_when_run_then_type_and_message_are_told_never_a_traceback() -> None:
    async def fail() -> str:
        raise ValueError("bad city")

    def fail_in_thread() -> str:
        raise KeyError("city")

    def fail_without_words() -> str:
        raise RuntimeError

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def fail_mute() -> str:
        raise Mute

    assert error_of(await called(fail)) == ("exception", "ValueError: bad city")
    assert error_of(await called(fail_in_thread)) == ("exception", "KeyError: 'city'")
    assert error_of(await called(fail_without_words)) == ("exception", "RuntimeError")
    assert error_of(await called(fail_mute)) == ("exception", "Mute")


class Wordless(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError


class Forgetful(ToolError):
    def __init__(self) -> None:
        self.hint = "look elsewhere"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Wordless(), ("exception", "Wordless")),
        (Forgetful(), ("tool_error", "Forgetful\nHint: look elsewhere")),
        (ToolError(404), ("tool_error", "404")),  # type: ignore[arg-type]
        (ToolError("gone", hint=Wordless()), ("tool_error", "gone")),  # type: ignore[arg-type]
        (GeneratorExit("x"), ("exception", "GeneratorExit: x")),
    ],
    ids=["no words", "no message", "a number", "a wordless hint", "GeneratorExit"],
)
@pytest.mark.parametrize("timeout_ms", [None, 60_000])
async def test_given_an_exception_that_is_hard_to_tell_when_run_then_it_is_still_a_result(
    error: BaseException, told: tuple[str, str], timeout_ms: int | None
) -> None:
    async def fail() -> str:
        raise error

    async def fail_in_mid_stream() -> AsyncIterator[str]:
        yield "a"
        raise error

    for function in (fail, fail_in_mid_stream):
        assert error_of(await called(tool(timeout_ms=timeout_ms)(function))) == told


async def test_given_a_default_that_fails_with_system_exit_when_bound_then_it_is_a_result() -> None:
    def leave() -> int:
        raise SystemExit(3)

    def take(x: Annotated[int, Field(default_factory=leave)]) -> int:
        return x

    assert error_of(await run_tool(tool(take), invocation("{}"))) == ("exception", "SystemExit: 3")


def test_given_a_waiting_tool_when_its_coroutine_is_closed_then_no_result_comes_of_it() -> None:
    steps: list[str] = []

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("closed")
        return "never"

    async def call() -> None:
        await run_tool(as_tool(wait), invocation("{}"))
        steps.append("went on")

    async def begin_and_close() -> None:
        coroutine = call()
        coroutine.send(None)
        await asyncio.create_task(asyncio.sleep(0))
        await asyncio.to_thread(coroutine.close)

    asyncio.run(begin_and_close())
    assert steps == ["closed"]


async def test_given_a_tool_error_when_run_then_its_own_words_and_hint_are_the_result() -> None:
    async def plain() -> str:
        raise ToolError("no such order")

    def hinted() -> str:
        raise ToolError("no such order", hint="list_orders shows them")

    assert error_of(await called(plain)) == ("tool_error", "no such order")
    assert error_of(await called(hinted)) == ("tool_error", "no such order\nHint: list_orders shows them")


if sys.version_info >= (3, 11):

    async def test_given_an_exception_group_when_run_then_its_members_are_told() -> None:
        async def fail() -> str:
            raise builtins.ExceptionGroup("unhandled", [ValueError("bad city"), KeyError("k")])

        assert error_of(await called(fail)) == ("exception", "ExceptionGroup: ValueError: bad city; KeyError: 'k'")

    def test_given_groups_nested_without_end_when_told_then_what_is_told_has_one() -> None:
        error: Exception = ValueError("bad city")
        for _ in range(10_000):
            error = builtins.ExceptionGroup("g", [error])

        assert error_of(failure_of(error)) == ("exception", "ExceptionGroup: " * 6 + "g (1 sub-exception)")


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit("x"), StopIteration("x"), StopAsyncIteration()])
async def test_given_an_exception_that_ends_programs_or_loops_when_a_sync_tool_raises_it_then_it_is_a_result(
    error: BaseException,
) -> None:
    def fail() -> str:
        raise error

    kind, text = error_of(await called(fail))

    assert (kind, type(error).__name__ in text) == ("exception", True)


async def test_given_system_exit_when_an_async_tool_raises_it_then_the_program_goes_on() -> None:
    async def fail() -> str:
        raise SystemExit(3)

    assert error_of(await called(fail)) == ("exception", "SystemExit: 3")
    assert error_of(await called(tool(timeout_ms=60_000)(fail))) == ("exception", "SystemExit: 3")


def test_given_a_keyboard_interrupt_when_a_tool_raises_it_then_it_gets_out() -> None:
    async def fail() -> str:
        raise KeyboardInterrupt

    def fail_in_thread() -> str:
        raise KeyboardInterrupt

    for function in (fail, fail_in_thread):
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(called(function))


@pytest.mark.parametrize("timeout_ms", [None, 60_000])
async def test_given_cancelled_error_born_inside_a_tool_when_run_then_it_is_a_result(timeout_ms: int | None) -> None:
    async def direct() -> str:
        raise asyncio.CancelledError

    async def through_another_task() -> str:
        other = asyncio.ensure_future(asyncio.sleep(3600))
        asyncio.get_running_loop().call_soon(other.cancel)
        await other
        return "never"

    def in_thread() -> str:
        raise asyncio.CancelledError

    for function in (direct, through_another_task, in_thread):
        made = tool(timeout_ms=timeout_ms)(function)
        assert error_of(await called(made)) == ("exception", "CancelledError")


@pytest.mark.parametrize("timeout_ms", [None, 60_000])
async def test_given_a_real_cancellation_when_a_tool_waits_then_it_gets_out_and_finally_ran(
    timeout_ms: int | None,
) -> None:
    began = asyncio.Event()
    steps: list[str] = []

    @tool(timeout_ms=timeout_ms)
    async def wait() -> str:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            steps.append("cleaned")
        return "never"

    context = ToolContext("s", "c", "k")
    task = asyncio.ensure_future(run_tool(wait, invocation("{}", context=context)))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (steps, context.cancelled) == (["cleaned"], True)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def ask_to_cancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@pytest.mark.parametrize("timeout_ms", [None, 60_000])
async def test_given_a_tool_that_asks_to_cancel_itself_when_it_returns_then_its_value_counts(
    timeout_ms: int | None,
) -> None:
    async def at_once() -> str:
        await ask_to_cancel()
        return "done"

    async def after_a_wait() -> str:
        await ask_to_cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return "done"

    async def and_fails() -> str:
        await ask_to_cancel()
        raise ValueError("bad city")

    for function in (at_once, after_a_wait):
        assert text_of(await called(tool(timeout_ms=timeout_ms)(function))) == "done"
    assert error_of(await called(tool(timeout_ms=timeout_ms)(and_fails))) == ("exception", "ValueError: bad city")
    await asyncio.sleep(0)  # nothing of it reaches the caller
    assert requests_to_cancel() == 0


async def test_given_a_tool_that_cancels_the_task_when_it_waits_then_the_caller_judges_before_the_flag_is_up() -> None:
    async def stop_me() -> str:
        await ask_to_cancel()
        await asyncio.sleep(0)
        return "never"

    context = ToolContext("s", "c", "k")
    flags: list[bool] = []

    async def judge() -> None:
        try:
            await run_tool(tool(stop_me), invocation("{}", context=context))
        except asyncio.CancelledError:
            flags.append(context.cancelled)

    await asyncio.create_task(judge())
    assert (flags, context.cancelled) == ([False], True) if CAN_ASK else ([], False)


async def test_given_a_request_from_before_when_a_tool_cancels_inside_then_it_is_a_result() -> None:
    async def broken() -> str:
        raise asyncio.CancelledError

    async def swallow_then_call() -> ToolResult:
        await ask_to_cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return await called(broken)

    assert error_of(await asyncio.create_task(swallow_then_call())) == ("exception", "CancelledError")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 cannot tell who cancelled a task")
async def test_given_a_tool_that_left_a_request_when_the_caller_is_really_cancelled_then_that_gets_out() -> None:
    async def leave_one() -> str:
        await ask_to_cancel()
        asyncio.get_running_loop().call_soon(running.cancel)  # runs while the tool's own request is taken back
        return "done"

    running = asyncio.create_task(called(leave_one))
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_given_a_limit_beyond_every_clock_when_called_then_no_task_is_left_behind() -> None:
    ran: list[str] = []

    async def run() -> None:
        ran.append("ran")

    endless = replace(as_tool(run), timeout_ms=10**400)
    with pytest.raises(OverflowError):
        await called(endless)
    await asyncio.sleep(0)
    assert (ran, asyncio.all_tasks()) == ([], {asyncio.current_task()})


def requests_to_cancel() -> int:
    task = asyncio.current_task()
    if sys.version_info >= (3, 11):
        return 0 if task is None else task.cancelling()
    return 0


async def after(event: asyncio.Event, clock: ManualClock, seconds: float, running: Awaitable[ToolResult]) -> ToolResult:
    await event.wait()
    await clock.advance(seconds)
    return await running


async def test_given_a_limit_when_an_async_tool_takes_longer_then_it_is_stopped_and_the_limit_named() -> None:
    began = asyncio.Event()
    steps: list[str] = []

    @tool(name="slow", timeout_ms=1500)
    async def slow() -> str:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            steps.append("cleaned")
        return "never"

    clock = ManualClock()
    with use_clock(clock):
        running = asyncio.ensure_future(called(slow))
        result = await after(began, clock, 1.5, running)

    assert error_of(result) == (
        "timeout",
        "slow did not finish within 1500 ms and was stopped; it may have taken effect",
    )
    assert steps == ["cleaned"]


async def test_given_a_limit_when_a_sync_tool_hangs_then_its_thread_is_fenced_off_and_counted() -> None:
    began, release, over = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    context = ToolContext("s", "c", "k")

    @tool(name="hang", timeout_ms=1000)
    def hang(ctx: ToolContext) -> str:
        loop.call_soon_threadsafe(began.set)
        release.wait()
        if ctx.cancelled:
            over.set()
        return "late"

    before = abandoned_threads()
    clock = ManualClock()
    with use_clock(clock):
        running = asyncio.ensure_future(run_tool(hang, invocation("{}", context=context)))
        result = await after(began, clock, 1.0, running)

    assert error_of(result)[0] == "timeout"
    assert abandoned_threads() == before + 1
    release.set()
    assert over.wait(10)


async def test_given_a_tool_that_ignores_its_cancellation_when_the_limit_is_over_then_it_is_left_alone() -> None:
    began, release = asyncio.Event(), asyncio.Event()

    @tool(name="stubborn", timeout_ms=1000)
    async def stubborn() -> str:
        began.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return "late"

    clock = ManualClock()
    with use_clock(clock):
        running = asyncio.ensure_future(called(stubborn))
        await began.wait()
        await clock.advance(2.0)
        result = await running

    assert error_of(result)[0] == "timeout"
    release.set()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)


async def test_given_a_tool_that_ends_in_time_when_it_has_a_limit_then_its_result_counts() -> None:
    @tool(timeout_ms=60_000)
    async def quick() -> str:
        return "done"

    @tool(timeout_ms=60_000)
    def quick_in_thread() -> str:
        return "done"

    assert text_of(await called(quick)) == "done"
    assert text_of(await called(quick_in_thread)) == "done"


async def test_given_a_sync_function_that_returns_an_awaitable_when_run_then_its_value_is_the_result() -> None:
    async def inner() -> str:
        return "awaited"

    def outer() -> Awaitable[str]:
        return inner()

    assert text_of(await called(outer)) == "awaited"


async def test_given_an_async_generator_when_run_then_each_item_is_shown_and_joined() -> None:
    async def count(ctx: ToolContext) -> AsyncIterator[object]:
        yield "a"
        ctx.emit("progress only")
        yield "b\ud83d"
        yield {"n": 1}
        yield [2]
        yield "c"

    shown = Shown()

    result = await called(count, "{}", shown)

    assert text_of(result) == 'ab�\n{"n":1}\n[2]\nc'
    assert shown.deltas == [("a", None), ("b�", None), ('{"n":1}', {"n": 1}), ("[2]", [2]), ("c", None)]


async def test_given_an_async_generator_that_yields_parts_or_nothing_when_run_then_the_result_holds_them() -> None:
    image = Image(url="http://x/y.png")

    async def draw() -> AsyncIterator[object]:
        yield "see "
        yield image
        yield "above"

    async def nothing() -> AsyncIterator[str]:
        for never in list[str]():
            yield never

    assert await called(draw) == ToolResult((Text("see "), image, Text("above")))
    assert text_of(await called(nothing)) == ""


async def test_given_a_generator_that_fails_in_the_middle_when_run_then_the_error_is_the_result() -> None:
    async def on_loop() -> AsyncIterator[str]:
        yield "a"
        raise ValueError("broken")

    def in_thread() -> Iterator[str]:
        yield "a"
        raise ValueError("broken")

    for function in (on_loop, in_thread):
        shown = Shown()
        assert error_of(await called(function, "{}", shown)) == ("exception", "ValueError: broken")
        assert shown.deltas == [("a", None)]


async def test_given_a_sync_generator_when_run_then_the_loop_goes_on_between_its_items() -> None:
    ticked = threading.Event()
    loop = asyncio.get_running_loop()
    threads: set[str] = set()

    def count() -> Iterator[str]:
        for sign in "abc":
            threads.add(threading.current_thread().name)
            ticked.clear()
            loop.call_soon_threadsafe(ticked.set)  # only a loop that is free comes to this
            assert ticked.wait(10)
            yield sign

    shown = Shown()

    assert text_of(await called(count, "{}", shown)) == "abc"
    assert shown.deltas == [("a", None), ("b", None), ("c", None)]
    assert len(threads) == 1
    assert threading.current_thread().name not in threads


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_given_a_generator_that_is_cancelled_when_it_waits_at_a_yield_then_its_finally_runs(kind: str) -> None:
    closed = threading.Event()

    async def on_loop() -> AsyncIterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.set()

    def in_thread() -> Iterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.set()

    at_show = asyncio.Event()

    async def show(_delta: str, _chunk: object | None) -> None:
        at_show.set()
        await asyncio.Event().wait()

    functions: dict[str, Callable[[], object]] = {"async": on_loop, "sync": in_thread}
    call = invocation("{}")
    call = type(call)(call.name, call.args_text, call.context, show)
    task = asyncio.ensure_future(run_tool(as_tool(functions[kind]), call))
    await at_show.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await asyncio.to_thread(closed.wait, 10)


async def test_given_a_consumer_that_is_slow_when_a_generator_yields_then_it_waits_for_it() -> None:
    made: list[int] = []
    seen: list[int] = []

    def count() -> Iterator[str]:
        for number in range(5):
            made.append(number)
            yield str(number)

    async def show(_delta: str, _chunk: object | None) -> None:
        await asyncio.sleep(0)
        seen.append(len(made))

    call = invocation("{}")
    result = await run_tool(as_tool(count), type(call)(call.name, call.args_text, call.context, show))

    assert (text_of(result), seen) == ("01234", [1, 2, 3, 4, 5])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 cannot tell who cancelled a task")
async def test_given_an_async_tool_without_limit_when_run_then_no_task_is_made_for_it() -> None:
    mine = asyncio.current_task()

    async def who() -> bool:
        return asyncio.current_task() is mine

    assert text_of(await called(who)) == "true"


async def test_given_a_python_that_cannot_ask_when_run_then_a_real_cancellation_is_told_from_one_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deepstrike.tools.running._CANNOT_ASK", True)
    began = asyncio.Event()

    async def inside() -> str:
        raise asyncio.CancelledError

    async def wait() -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    assert error_of(await called(inside)) == ("exception", "CancelledError")
    task = asyncio.ensure_future(called(wait))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
