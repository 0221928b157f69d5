"""Threads of our own for sync tools."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from contextvars import ContextVar

import pytest
from toolcalls import called, error_of, text_of

from deepstrike.tools import threads
from deepstrike.tools.threads import MAX_ABANDONED, MAX_BUSY, abandoned_threads, run_in_thread

seen_here: ContextVar[str] = ContextVar("seen_here", default="unset")


async def test_given_context_variables_when_a_sync_tool_runs_then_it_sees_the_callers() -> None:
    def look() -> str:
        found = seen_here.get()
        seen_here.set("changed inside")
        return found

    seen_here.set("of the caller")

    assert text_of(await called(look)) == "of the caller"
    assert seen_here.get() == "of the caller"


async def test_given_two_sync_calls_when_run_together_then_they_run_side_by_side() -> None:
    barrier = threading.Barrier(2, timeout=10)

    def meet() -> str:
        barrier.wait()
        return "met"

    results = await asyncio.gather(called(meet), called(meet))

    assert [text_of(result) for result in results] == ["met", "met"]


async def test_given_calls_one_after_the_other_when_run_then_an_idle_daemon_thread_is_used_again() -> None:
    found: list[threading.Thread] = []

    for _ in range(5):
        await run_in_thread(lambda: found.append(threading.current_thread()))

    assert len(set(found)) <= 2
    assert all(thread.daemon and thread.name.startswith("deepstrike-tool-") for thread in found)


async def test_given_a_cancelled_call_when_its_thread_comes_back_then_the_late_result_is_dropped() -> None:
    loop = asyncio.get_running_loop()
    began, release, over = asyncio.Event(), threading.Event(), threading.Event()

    def hang() -> str:
        loop.call_soon_threadsafe(began.set)
        release.wait()
        over.set()
        return "late"

    before = abandoned_threads()
    task = asyncio.ensure_future(run_in_thread(hang))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert abandoned_threads() == before + 1

    release.set()
    assert over.wait(10)
    while abandoned_threads() > before:
        await asyncio.sleep(0)


async def test_given_too_many_hung_threads_when_a_call_comes_then_it_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool(abandoned=MAX_ABANDONED))

    def quick() -> str:
        return "never run"

    kind, text = error_of(await called(quick))

    assert kind == "exception"
    assert text.startswith(f"TooManyHungThreads: {MAX_ABANDONED} threads of earlier tool calls hang")


async def test_given_as_many_calls_as_may_run_when_more_come_then_they_wait_and_a_cancelled_one_never_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = threads._Pool(busy=MAX_BUSY - 1)
    monkeypatch.setattr(threads, "_pool", pool)
    release = threading.Event()
    ran: list[str] = []

    first = asyncio.ensure_future(run_in_thread(release.wait))
    await asyncio.sleep(0)
    given_up = asyncio.ensure_future(run_in_thread(lambda: ran.append("given up")))
    second = asyncio.ensure_future(run_in_thread(lambda: ran.append("second")))
    await asyncio.sleep(0)
    assert len(pool.waiting) == 2
    given_up.cancel()
    await asyncio.wait([given_up])  # only then may a thread become free
    release.set()
    await asyncio.gather(first, second)

    assert (ran, len(pool.waiting), pool.busy, pool.abandoned) == (["second"], 0, MAX_BUSY - 1, 0)


async def test_given_an_idle_thread_when_its_time_is_over_then_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool())
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.01)

    thread = await run_in_thread(threading.current_thread)
    await asyncio.to_thread(thread.join, 10)

    assert (thread.is_alive(), threads._pool.idle) == (False, [])


def test_given_several_loops_when_each_runs_sync_tools_then_each_gets_its_own_results() -> None:
    barrier = threading.Barrier(2, timeout=10)
    results: dict[str, str] = {}

    def meet(name: str) -> str:
        barrier.wait()
        return name

    def loop_of(name: str) -> None:
        async def main() -> str:
            return await run_in_thread(lambda: meet(name))

        results[name] = asyncio.run(main())

    others = [threading.Thread(target=loop_of, args=(name,)) for name in ("a", "b")]
    for other in others:
        other.start()
    for other in others:
        other.join()

    assert results == {"a": "a", "b": "b"}


def run_script(source: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_given_a_hung_tool_when_the_program_ends_then_neither_loop_nor_interpreter_waits() -> None:
    source = """
        import asyncio, threading
        from deepstrike.tools.threads import abandoned_threads, run_in_thread

        async def main():
            loop, began = asyncio.get_running_loop(), asyncio.Event()
            def hang():
                loop.call_soon_threadsafe(began.set)
                threading.Event().wait()
            task = asyncio.ensure_future(run_in_thread(hang))
            await began.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            print("abandoned", abandoned_threads())

        asyncio.run(main())
        print("end")
    """

    assert run_script(source) == (0, "abandoned 1\nend\n", "")


def test_given_a_loop_that_is_closed_when_a_late_result_comes_then_it_is_dropped_quietly() -> None:
    source = """
        import asyncio, threading
        from deepstrike.tools.threads import run_in_thread

        release = threading.Event()
        def wait():
            release.wait()
            return threading.current_thread()
        async def main():
            asyncio.ensure_future(run_in_thread(wait))
            await asyncio.sleep(0)
        asyncio.run(main())
        release.set()
        print(asyncio.run(run_in_thread(lambda: "again")))
    """

    assert run_script(source) == (0, "again\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_given_used_threads_when_the_process_forks_then_the_child_makes_its_own() -> None:
    source = """
        import asyncio, os
        from deepstrike.tools.threads import _pool, run_in_thread

        asyncio.run(run_in_thread(lambda: None))
        _pool.lock.acquire()  # as if another thread were just inside
        child = os.fork()
        if child == 0:
            print(asyncio.run(run_in_thread(lambda: "child works")), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        _pool.lock.release()
        print(status, asyncio.run(run_in_thread(lambda: "parent works")))
    """

    status, out, _ = run_script(source)

    assert (status, out) == (0, "child works\n0 parent works\n")
    assert os.getpid() > 0
