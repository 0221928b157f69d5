"""Work that may wait for a disk, kept off the event loop and in order.

A `Lane` stands for one thing that only one may work on at a time: an open file, a connection. Short work on an idle
lane may be done where the caller is; all other work is done by daemon threads of our own, in the order it came.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
E = TypeVar("E")

MAX_THREADS: Final = 16
"""Threads that work for all lanes together; further work waits."""
IDLE_SECONDS: Final = 10.0
"""How long a thread without work stays."""


class _Crew:
    """The threads. Everything is changed under the lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collector may end a log, and have it closed here, at any line
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._free = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Have a thread do the job; where no thread can be had any more, because the interpreter ends, do it here."""
        with self._lock:
            self._free -= 1
            born = self._free < 0 and self._threads < MAX_THREADS
            if born:
                self._threads += 1
                self._free += 1
        if born:
            self._start(job)
        else:
            self._jobs.put(job)

    def _start(self, job: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._serve, args=(job,), name="deepstrike-log", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
            job()

    def _serve(self, job: Callable[[], None] | None) -> None:
        while job is not None:
            job()
            del job  # an idle thread keeps no result alive
            with self._lock:
                self._free += 1
            job = self._next()

    def _next(self) -> Callable[[], None] | None:
        """The next job; None when there was none for long, and this thread is let go."""
        job: Callable[[], None] | None = None
        leaving = False
        while job is None and not leaving:
            with suppress(queue.Empty):
                job = self._jobs.get(timeout=IDLE_SECONDS)
            leaving = job is None and self._retire()
        return job

    def _retire(self) -> bool:
        """Count the thread out; False where a job is on its way to it."""
        with self._lock:
            if self._free <= 0:
                return False
            self._free -= 1
            self._threads -= 1
            return True


_crew = _Crew()


def _new_crew() -> None:
    """In a forked child: the parent's threads are not there, and its lock may be held for ever."""
    global _crew
    _crew = _Crew()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_new_crew)


class _Job(Generic[T]):
    """One piece of work, and the future that its asker waits for."""

    __slots__ = ("_forsaken", "_future", "_lock", "_loop", "_undo", "_value", "_work", "_worked")

    def __init__(self, work: Callable[[], T], undo: Callable[[T], None] | None) -> None:
        self._work = work
        self._undo = undo
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()
        self._lock = threading.Lock()
        self._forsaken = False
        self._worked = False
        self._value: T | None = None

    def perform(self) -> Callable[[], None]:
        """Do the work, unless its asker has gone before it began; what is returned tells the loop how it ended."""
        given_up = self._forsaken
        if given_up:
            return _nothing
        try:
            value = self._work()
        except BaseException as error:
            return partial(self._tell, self._fail, error)
        with self._lock:
            self._worked, self._value, forsaken = True, value, self._forsaken
        if forsaken and self._undo is not None:
            self._undo(value)
            return _nothing
        return partial(self._tell, self._settle, value)

    def forsake(self) -> None:
        """Nobody waits any more: work that has not begun is not done, a result that nobody took is undone."""
        with self._lock:
            worked, self._forsaken = self._worked, True
        if worked and self._undo is not None:
            self._undo(self._value)  # type: ignore[arg-type]  # set together with `_worked`

    async def outcome(self) -> T:
        try:
            return await self._future
        except asyncio.CancelledError:
            self.forsake()
            raise

    def _tell(self, how: Callable[[E], None], what: E) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(how, what)

    def _settle(self, value: T) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)


def _nothing() -> None:
    """Its turn comes when all before it is done."""


async def in_thread(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """Run `work` in a thread, beside everything else, and return or raise what it does.

    Cancelling returns at once. Work that had begun goes on; what it gives is then handed to `undo`.
    """
    job = _Job(work, undo)
    _crew.submit(lambda: job.perform()())
    return await job.outcome()


class Lane:
    """One thing that only one may work on at a time. From any thread and event loop."""

    __slots__ = ("_busy", "_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False

    def enter(self) -> bool:
        """Take the lane for short work right here, if it is idle; then `leave` must follow."""
        with self._lock:
            if self._busy:
                return False
            self._busy = True
            return True

    def leave(self) -> None:
        """Let the next work begin."""
        with self._lock:
            begin = self._waiting.popleft() if self._waiting else None
            self._busy = begin is not None
        if begin is not None:
            begin()

    async def run(self, work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        """Run `work` in a thread when its turn has come, and return or raise what it does.

        Cancelling returns at once. Work that had begun goes on, and whatever is asked for later waits for it; what it
        gives is handed to `undo`.
        """
        job = _Job(work, undo)

        def turn() -> None:
            tell = _nothing
            try:
                tell = job.perform()
            finally:
                self.leave()  # first: who is told may find the lane idle then
            tell()

        self._line_up(lambda: _crew.submit(turn))
        return await job.outcome()

    async def passed(self) -> None:
        """Wait until all that was asked for so far is done."""
        if self._busy:
            await self.run(_nothing)

    def post(self, work: Callable[[], None]) -> None:
        """Have `work` done in a thread when its turn has come; nobody waits for it, so it must not raise."""

        def turn() -> None:
            try:
                work()
            finally:
                self.leave()

        self._line_up(lambda: _crew.submit(turn))

    def hold(self, seconds: float) -> bool:
        """Wait until all that was asked for is done, and keep the lane until `leave`; False if that took longer."""
        arrived = threading.Event()
        self._line_up(arrived.set)
        if arrived.wait(seconds):
            return True
        with self._lock:
            if arrived.is_set():
                return True
            self._waiting.remove(arrived.set)
        return False

    def _line_up(self, begin: Callable[[], None]) -> None:
        with self._lock:
            if self._busy:
                self._waiting.append(begin)
                return
            self._busy = True
        begin()
