"""AskUser: put a question to whoever answers in this process."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from deepstrike.host.approval import FITTING, answer_to, ruling
from deepstrike.host.exchange import answer_text
from deepstrike.host.requests import permission, suspension
from deepstrike.host.steady import told
from deepstrike.text import well_formed
from deepstrike.tools.threads import run_in_thread
from deepstrike.wire.input import Answer, Deny, Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.host.approval import Validate
    from deepstrike.stream import PermissionRequestEvent, ToolSuspendEvent
    from deepstrike.wire.effect import AskUser
    from deepstrike.wire.input import AnswerBody

    OnToolSuspend = Callable[[ToolSuspendEvent], object]
    OnPermissionRequest = Callable[[PermissionRequestEvent], object]

E = TypeVar("E")


class Question:
    """One question in the hands of somebody in this process. Asking that fails is a refusal."""

    __slots__ = ("_answer", "_effect", "_failure", "_stopped")

    def __init__(self, effect: int, answer: Callable[[], Awaitable[AnswerBody]], failure: str) -> None:
        self._effect = effect
        self._answer = answer
        self._failure = failure
        self._stopped = False

    @property
    def waits(self) -> bool:
        """A question waits for somebody."""
        return True

    def stopped(self) -> None:
        """A question that was stopped comes to nothing."""

    def stop(self, task: asyncio.Task[None]) -> None:
        """Stop asking; a function in a thread is fenced off."""
        self._stopped = True
        task.cancel()

    async def run(self) -> Answer | None:
        """The answer; None when it was stopped."""
        try:
            return Answer(self._effect, await self._answer())
        except asyncio.CancelledError as error:
            return None if self._stopped else self.broken(error)
        except Exception as error:
            return self.broken(error)

    def broken(self, error: BaseException) -> Answer:
        """The refusal that a failure is: the call gets an error result that says so."""
        return Answer(self._effect, Deny(f"{self._failure}: {well_formed(told(error))}"))


def tool_question(ask: AskUser, on_tool_suspend: OnToolSuspend, path: tuple[str, ...] = ()) -> Question:
    """A tool's own question, for `RuntimeOptions.on_tool_suspend`."""

    async def answer() -> Value:
        return Value(answer_text(await _answered(on_tool_suspend, suspension(ask, path))))

    return Question(ask.id, answer, "the tool's question got no answer")


def permission_question(
    ask: AskUser, on_permission_request: OnPermissionRequest, validate: Validate, path: tuple[str, ...] = ()
) -> Question:
    """Whether a call may run, for `RuntimeOptions.on_permission_request`."""

    async def answer() -> AnswerBody:
        given = await _answered(on_permission_request, permission(ask, path))
        said = ruling(given)
        if said is None:
            return Deny(f"asking for permission gave a value of type {type(given).__name__}, not {FITTING}")
        return answer_to(ask, said, validate)

    return Question(ask.id, answer, "asking for permission failed")


async def _answered(callback: Callable[[E], object], event: E) -> object:
    """A coroutine function runs on the loop; any other in a thread, as it may well wait for a person."""
    if inspect.iscoroutinefunction(callback):
        answer: object = await callback(event)
        return answer
    answer = await run_in_thread(partial(callback, event))
    return await answer if inspect.isawaitable(answer) else answer
