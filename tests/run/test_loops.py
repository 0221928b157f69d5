"""Event loops, threads and processes around a run."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import threading
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.queues import Queue
from typing import Literal

import pytest
from doubles import Script, add, call, calls, only, runner_of, say

from deepstrike import RunFailed, ToolResultEvent, collect_text
from deepstrike.errors import Overloaded, SessionBusy


def answer() -> Script:
    return Script(calls(call("add", '{"x":17,"y":28}')), say("45"))


def test_one_runner_serves_one_loop_after_the_other() -> None:
    runner = runner_of(Script(say("hi")))
    assert [asyncio.run(collect_text(runner.run_streaming("q"))) for _ in range(2)] == ["hi", "hi"]


def test_one_runner_serves_several_loops_at_once() -> None:
    runner = runner_of(Script(say("hi")))
    texts: list[str] = []

    def work() -> None:
        texts.append(asyncio.run(collect_text(runner.run_streaming("q"))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert texts == ["hi"] * 8


def test_run_sync_works_many_times_without_a_loop() -> None:
    for _ in range(3):
        assert runner_of(answer(), add).run_sync("17 + 28?").text == "45"


async def test_run_sync_works_inside_a_running_loop() -> None:
    assert runner_of(answer(), add).run_sync("17 + 28?").text == "45"


def test_run_sync_raises_run_failed() -> None:
    with pytest.raises(RunFailed, match="down"):
        runner_of(Script(Overloaded("down"))).run_sync("hello")


async def test_a_session_with_a_live_run_is_busy() -> None:
    runner = runner_of(Script(say("hi")))
    run = runner.run_streaming("one", session_id="s")
    await anext(aiter(run))
    with pytest.raises(SessionBusy, match="in progress"):
        await runner.run("two", session_id="s")
    await run.aclose()
    assert (await runner.run("three", session_id="s")).status == "completed"


async def test_context_variables_of_the_caller_reach_the_tools() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")

    def who() -> str:
        return tenant.get()

    tenant.set("acme")
    script = Script(calls(call("who")), say("ok"))
    events = [event async for event in runner_of(script, who).run_streaming("who?")]
    assert [event.content for event in only(ToolResultEvent, events)] == ["acme"]


async def test_sync_tools_of_one_turn_run_side_by_side() -> None:
    barrier = threading.Barrier(3, timeout=20)

    def meet() -> str:
        barrier.wait()
        return "met"

    script = Script(calls(*[call("meet", "{}", f"c{n}") for n in range(3)]), say("ok"))
    events = [event async for event in runner_of(script, meet).run_streaming("meet")]
    assert [event.content for event in only(ToolResultEvent, events)] == ["met"] * 3


async def test_the_cap_on_parallel_tools_holds() -> None:
    running = 0
    most = 0

    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return "ok"

    script = Script(calls(*[call("work", "{}", f"c{n}") for n in range(9)]), say("ok"))
    events = [event async for event in runner_of(script, work, max_parallel_tools=2).run_streaming("work")]
    assert (len(only(ToolResultEvent, events)), most) == (9, 2)


async def test_results_reach_the_model_in_call_order_however_they_finish() -> None:
    order: list[str] = []
    gates = {name: asyncio.Event() for name in "abc"}

    async def wait_for(name: str) -> str:
        await gates[name].wait()
        order.append(name)
        if name == "b":
            raise ValueError("bad b")
        following = {"c": "a", "a": "b"}.get(name)
        if following:
            gates[following].set()
        return name

    gates["c"].set()
    script = Script(calls(*[call("wait_for", f'{{"name":"{n}"}}', n) for n in "abc"]), say("ok"))
    events = [event async for event in runner_of(script, wait_for).run_streaming("go")]
    by_id = {event.call_id: event for event in only(ToolResultEvent, events)}
    assert order == ["c", "a", "b"]
    assert [by_id[n].is_error for n in "abc"] == [False, True, False]
    assert "bad b" in by_id["b"].content
    turns = script.turns[1][2:]
    assert [getattr(turn, "call_id", None) for turn in turns] == ["a", "b", "c"]


def _run_in_child(queue: Queue[str]) -> None:
    queue.put(runner_of(answer(), add).run_sync("17 + 28?").text)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_runs_work_in_child_processes(method: Literal["fork", "spawn"]) -> None:
    runner_of(answer(), add).run_sync("17 + 28?")
    context: SpawnContext | ForkContext = (
        multiprocessing.get_context("fork") if method == "fork" else multiprocessing.get_context("spawn")
    )
    queue: Queue[str] = context.Queue()
    child = context.Process(target=_run_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == "45"
    child.join(30)
    assert child.exitcode == 0
