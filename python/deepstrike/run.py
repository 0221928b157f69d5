"""A run as its caller holds it: iterate it, await it, or drop it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError, RunFailed
from deepstrike.host.outbox import Outbox
from deepstrike.output.drafts import Drafts
from deepstrike.stream import DoneEvent, ErrorEvent, RunResult, TextDelta, ToolResultEvent, UsageEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Generator
    from types import TracebackType

    from deepstrike.host.agents import Child
    from deepstrike.output.form import Form
    from deepstrike.stream import StreamEvent

    Perform = Callable[[Child, Outbox], Awaitable[RunResult]]


class Run:
    """One run. Nothing happens before the first await or iteration.

    `async for event in run` takes its one iterator; a second one raises `RuntimeError`. Dropping it (`break`,
    `aclose()`, cancellation) stops the model call and the tools and leaves a valid log. `await run` gives the
    `RunResult` and raises `RunFailed` when the status is `error`, also after iterating (events not yet taken are
    dropped then); iterating after awaiting raises `RuntimeError`. `async with run` closes it at the end of the block.
    """

    def __init__(self, begin: Callable[[], Child], perform: Perform, form: Form | None = None) -> None:
        self._begin = begin
        self._perform = perform
        self._form = form
        self._work: _Work | None = None

    def __aiter__(self) -> RunEvents:
        if self._work is not None:
            raise RuntimeError("a run is iterated once, and not after it was awaited: call run_streaming again")
        self._work = _Work(self._begin, self._perform)
        return RunEvents(self._work)

    def drafts(self) -> Drafts:
        """The answer of a run with an `output_type` while it is written: partial values, then the validated one.

        It is the run's one iterator. The run can be awaited afterwards. Raises `ConfigError` without an `output_type`.
        """
        if self._form is None:
            raise ConfigError("drafts are of an answer in a form: give the runner an output_type, or iterate the run")
        return Drafts(aiter(self), self._form, self.result)

    def __await__(self) -> Generator[object, None, RunResult]:
        return self.result().__await__()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop the run if it is under way, and wait until it has let go. Closing twice does nothing."""
        if self._work is not None:
            await self._work.stop()

    async def result(self) -> RunResult:
        """What awaiting the run gives. Cancelling it stops the run."""
        if self._work is None:
            self._work = _Work(self._begin, self._perform)
            return _checked(await self._work.perform())
        return _checked(await self._work.result())


class RunEvents:
    """The one iterator of a run. Dropping it, or `aclose()`, stops the run."""

    __slots__ = ("_events", "_work")

    def __init__(self, work: _Work) -> None:
        self._work = work
        self._events = work.outbox.events

    def __aiter__(self) -> RunEvents:
        return self

    async def __anext__(self) -> StreamEvent:
        if not self._events and not await self._work.arrival():
            raise StopAsyncIteration
        return self._events.popleft()

    async def aclose(self) -> None:
        """Stop the run and wait until it has let go."""
        await self._work.stop()

    def __del__(self) -> None:
        self._work.drop()


class _Work:
    """What a run and its iterator share; it refers to neither, so dropping the iterator is seen at once."""

    __slots__ = ("_begin", "_conduct", "_loop", "_perform", "_task", "outbox")

    def __init__(self, begin: Callable[[], Child], perform: Perform) -> None:
        self._begin = begin
        self._perform = perform
        self._conduct: Child | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # The task that does the work: one of our own, or the one that awaits the run.
        self._task: asyncio.Task[RunResult] | asyncio.Future[None] | None = None
        self.outbox = Outbox()

    async def perform(self) -> RunResult:
        """Do the work here, with nobody listening."""
        self.outbox.leave()
        self._conduct = self._begin()
        self._task = over = asyncio.get_running_loop().create_future()
        try:
            return await self._perform(self._conduct, self.outbox)
        finally:
            over.set_result(None)

    async def arrival(self) -> bool:
        """Wait until there are events; False at the end. The first time begins the work. Cancelling ends it."""
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._conduct = self._begin()
            self._task = asyncio.create_task(_produce(self._perform, self._conduct, self.outbox))
        try:
            if await self.outbox.arrival():
                return True
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self.stop()
            raise
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error
        return False

    async def result(self) -> RunResult:
        """The result of work that was begun elsewhere, once it is there. Nobody need listen any more."""
        self.outbox.leave()
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error
        if self._conduct is None or self._conduct.result is None:
            raise RuntimeError("this run has no result: it was dropped before it began")
        return self._conduct.result

    async def stop(self) -> None:
        """Cancel the work and wait for it. Its own end is bounded: effects are left behind after a grace."""
        self.outbox.leave()
        if not isinstance(self._task, asyncio.Task):
            return
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()

    def drop(self) -> None:
        """Nobody listens any more. From any thread, as a finalizer is."""
        if not isinstance(self._task, asyncio.Task) or self._loop is None or self._task.done():
            return
        # A loop that is closed has cancelled its tasks already.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cancel, self._task)

    def _cancel(self, task: asyncio.Task[RunResult]) -> None:
        self.outbox.leave()
        task.cancel()


async def _produce(perform: Perform, conduct: Child, outbox: Outbox) -> RunResult:
    try:
        return await perform(conduct, outbox)
    finally:
        outbox.close()


async def collect_text(stream: AsyncIterable[StreamEvent]) -> str:
    """The text of the last turn of a stream of events.

    Raises `RunFailed`, carrying the partial text, when the run ends with status `error`.
    """
    pieces: list[str] = []
    turn_over = False
    failure: ErrorEvent | None = None
    async for event in stream:
        if isinstance(event, TextDelta):
            if turn_over:
                pieces.clear()
                turn_over = False
            pieces.append(event.delta)
        elif isinstance(event, UsageEvent | ToolResultEvent):
            turn_over = True
        elif isinstance(event, ErrorEvent):
            failure = event
        elif isinstance(event, DoneEvent) and event.status == "error":
            raise _failed(event, "".join(pieces), failure)
    return "".join(pieces)


def _checked(result: RunResult) -> RunResult:
    if result.status == "error":
        raise RunFailed(result.error or "the run failed", result=result, code=result.code, retryable=result.retryable)
    return result


def _failed(done: DoneEvent, text: str, failure: ErrorEvent | None) -> RunFailed:
    fault = failure if failure is not None else ErrorEvent("the run failed")
    retryable = bool(fault.retryable)
    result = RunResult(
        text=text,
        output=done.output,
        status=done.status,
        pending=(),
        iterations=done.iterations,
        usage=done.usage if done.usage is not None else UsageEvent(0, 0),
        total_tokens=done.total_tokens,
        session_id=done.session_id or "",
        error=fault.message,
        code=fault.code,
        retryable=retryable,
    )
    return RunFailed(fault.message, result=result, code=fault.code, retryable=retryable)
