"""AskUser: put a tool's question to whoever answers in this process."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING

from deepstrike.host.exchange import answer_text
from deepstrike.host.requests import suspension
from deepstrike.host.steady import told
from deepstrike.text import well_formed
from deepstrike.tools.threads import run_in_thread
from deepstrike.wire.input import Answer, Deny, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.stream import ToolSuspendEvent
    from deepstrike.wire.effect import AskUser

    OnToolSuspend = Callable[[ToolSuspendEvent], object]


class Question:
    """One question in the hands of `RuntimeOptions.on_tool_suspend`."""

    __slots__ = ("_ask", "_stopped")

    def __init__(self, ask: AskUser) -> None:
        self._ask = ask
        self._stopped = False

    def stop(self, task: asyncio.Task[None]) -> None:
        """Stop asking; a function in a thread is fenced off."""
        self._stopped = True
        task.cancel()

    async def run(self, on_tool_suspend: OnToolSuspend) -> Answer | None:
        """The answer; a refusal where asking fails; None when it was stopped."""
        try:
            text = answer_text(await _answered(on_tool_suspend, suspension(self._ask)))
        except asyncio.CancelledError as error:
            return None if self._stopped else self.broken(error)
        except Exception as error:
            return self.broken(error)
        return Answer(self._ask.id, Value(text))

    def broken(self, error: BaseException) -> Answer:
        """The refusal that a failure is: the call gets an error result that says so."""
        return Answer(self._ask.id, Deny(f"the tool's question got no answer: {well_formed(told(error))}"))


async def _answered(on_tool_suspend: OnToolSuspend, event: ToolSuspendEvent) -> object:
    """A coroutine function runs on the loop; any other in a thread, as it may well wait for a person."""
    if inspect.iscoroutinefunction(on_tool_suspend):
        answer: object = await on_tool_suspend(event)
        return answer
    answer = await run_in_thread(partial(on_tool_suspend, event))
    return await answer if inspect.isawaitable(answer) else answer
