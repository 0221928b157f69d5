"""Awaiting a coroutine in another context, without a task of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from contextvars import Context

T = TypeVar("T")


class InContext(Generic[T]):
    """`await InContext(context, coroutine)`: each step of the coroutine runs in `context`.

    What it sets there is not seen by the awaiting task. Cancelling that task reaches the coroutine as always, and
    `asyncio.current_task()` is that task.
    """

    __slots__ = ("_context", "_coroutine")

    def __init__(self, context: Context, coroutine: Coroutine[object, object, T]) -> None:
        self._context = context
        self._coroutine = coroutine

    def __await__(self) -> Generator[object, object, T]:
        step, coroutine = self._context.run, self._coroutine
        try:
            waits_for = step(coroutine.send, None)
            while True:
                try:
                    got = yield waits_for
                except GeneratorExit:  # noqa: PERF203
                    step(coroutine.close)
                    raise
                except BaseException as error:
                    waits_for = step(coroutine.throw, error)
                else:
                    waits_for = step(coroutine.send, got)
        except StopIteration as stop:
            result: T = stop.value
            return result
