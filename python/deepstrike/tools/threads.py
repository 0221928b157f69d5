"""Daemon threads of our own for sync tools: never the default executor, waited for by nobody.

A Python thread cannot be killed. One whose call was given up (cancelled, timed out) is *abandoned*: its late result is
dropped, it is counted, and when too many hang no new call is started. Idle threads are used again and end after a
while. The pool serves any number of event loops and is new in a forked child.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections import deque
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

T = TypeVar("T")

MAX_BUSY: Final = 256
"""Calls that run at once; further ones wait for their turn."""
MAX_ABANDONED: Final = 64
"""Hung threads, beyond which no new call is started."""
IDLE_SECONDS: Final = 30.0
"""How long an idle thread waits for work before it ends."""


class TooManyHungThreads(RuntimeError):
    """So many earlier calls never came back that no new one is started."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: object = None
    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class _Job:
    """One piece of work on its way through a thread."""

    work: Callable[[], object]
    context: Context
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[_Outcome]
    started: bool = False
    finished: bool = False
    abandoned: bool = False

    def run(self) -> _Outcome:
        try:
            return _Outcome(value=self.context.run(self.work))
        except BaseException as error:
            return _Outcome(error=error)

    def deliver(self, outcome: _Outcome) -> None:
        """Hand the outcome to the loop; where the loop is gone or nobody waits, it is dropped."""
        if self.abandoned:
            return
        try:
            self.loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:
            return  # the loop is closed

    def _settle(self, outcome: _Outcome) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class _Worker:
    """A thread and the box that its jobs come through."""

    __slots__ = ("inbox",)

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()


@dataclass(slots=True)
class _Pool:
    """Who works on what. Everything is changed under the lock; threads are started and woken outside of it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[_Worker] = field(default_factory=list)
    waiting: deque[_Job] = field(default_factory=deque)
    busy: int = 0
    abandoned: int = 0
    born: int = 0

    def submit(self, job: _Job) -> None:
        """Start the job, or let it wait if `MAX_BUSY` run. Raises `TooManyHungThreads`."""
        with self.lock:
            if self.abandoned >= MAX_ABANDONED:
                raise TooManyHungThreads(
                    f"{self.abandoned} threads of earlier tool calls hang; no new one is started. "
                    "Find the tool that never returns, or restart the program"
                )
            if self.busy >= MAX_BUSY:
                self.waiting.append(job)
                return
            worker = self._taken(job)
        self._begin(worker, job)

    def abandon(self, job: _Job) -> None:
        """Give the job up: drop it if it waits, count its thread if it runs, nothing if it is over."""
        following: _Job | None = None
        with self.lock:
            if job.finished or job.abandoned:
                return
            job.abandoned = True
            if not job.started:
                job.finished = True
                self.waiting.remove(job)
                return
            self.abandoned += 1
            self.busy -= 1
            if self.waiting:
                following = self.waiting.popleft()
                worker = self._taken(following)
        if following is not None:
            self._begin(worker, following)

    def finish(self, job: _Job, worker: _Worker) -> _Job | None:
        """Book the end of a job; returns the next one for this thread, or None after putting it with the idle ones."""
        with self.lock:
            job.finished = True
            if job.abandoned:
                self.abandoned -= 1
            else:
                self.busy -= 1
            if self.waiting and self.busy < MAX_BUSY:
                following = self.waiting.popleft()
                following.started = True
                self.busy += 1
                return following
            self.idle.append(worker)
            return None

    def retire(self, worker: _Worker) -> bool:
        """Take an idle thread out; False if it was given work in the last moment."""
        with self.lock:
            if worker not in self.idle:
                return False
            self.idle.remove(worker)
            return True

    def _taken(self, job: _Job) -> _Worker | None:
        job.started = True
        self.busy += 1
        return self.idle.pop() if self.idle else None

    def _begin(self, worker: _Worker | None, job: _Job) -> None:
        if worker is not None:
            worker.inbox.put(job)
            return
        self.born += 1
        worker = _Worker()
        worker.inbox.put(job)
        thread = threading.Thread(target=_serve, args=(self, worker), name=f"deepstrike-tool-{self.born}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, or the system gives no more threads
            with self.lock:
                job.finished = True
                self.busy -= 1
            raise


def _serve(pool: _Pool, worker: _Worker) -> None:
    """The life of a thread: one job after the other, until it has been idle for long."""
    job: _Job | None = None
    while True:
        if job is None:
            try:
                job = worker.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if pool.retire(worker):
                    return
                continue
        outcome = job.run()
        following = pool.finish(job, worker)
        job.deliver(outcome)
        job = following
        del outcome, following  # an idle thread keeps no result alive


_pool = _Pool()


def _new_pool() -> None:
    """In a forked child: the parent's threads are not there, and its lock may be held for ever."""
    global _pool
    _pool = _Pool()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_new_pool)


def abandoned_threads() -> int:
    """How many threads still run a call that nobody waits for."""
    return _pool.abandoned


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in one of our threads, with the caller's context variables, and return or raise what it does.

    Cancelling returns at once: the thread goes on alone and its result is dropped. Raises `TooManyHungThreads`.
    """
    job = _start(work)
    try:
        outcome = await job.future
    except asyncio.CancelledError:
        _pool.abandon(job)
        raise
    _raise_if_failed(outcome)
    return outcome.value  # type: ignore[return-value]  # the value of `work`


async def iterate_in_thread(source: Generator[object, object, object]) -> AsyncGenerator[object, None]:
    """Iterate a sync generator in one thread, one item ahead of nobody: it goes on when the item was taken.

    Closing or cancelling ends the generator at its `yield`; one that hangs between two yields is abandoned.
    """
    items: asyncio.Queue[object] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    taken = threading.Semaphore(0)
    fenced = threading.Event()

    def drain() -> None:
        try:
            for item in source:
                loop.call_soon_threadsafe(items.put_nowait, item)
                taken.acquire()
                if fenced.is_set():
                    return
        finally:
            source.close()

    job = _start(drain)
    job.future.add_done_callback(lambda _: items.put_nowait(_END))
    try:
        while (item := await items.get()) is not _END:
            yield item
            taken.release()
        _raise_if_failed(job.future.result())
    finally:
        fenced.set()
        taken.release()
        _pool.abandon(job)


_END: Final = object()


def _start(work: Callable[[], object]) -> _Job:
    loop = asyncio.get_running_loop()
    job = _Job(work, copy_context(), loop, loop.create_future())
    _pool.submit(job)
    return job


def _raise_if_failed(outcome: _Outcome) -> None:
    if isinstance(outcome.error, GeneratorExit | StopIteration | StopAsyncIteration):
        # These would end our own coroutines instead of telling about the tool.
        raise RuntimeError(f"the tool raised {type(outcome.error).__name__}") from outcome.error
    if outcome.error is not None:
        raise outcome.error
