"""A tool that asks and waits: what it yields, and what that comes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suspend:
    """Yielded by an async-generator tool to ask for a value and wait for it: `answer = yield Suspend(payload)`.

    `payload` is anything that JSON can hold. The answer comes from `RuntimeOptions.on_tool_suspend`; without it the
    generator is closed and the run parks, until `runner.resume(session_id, answers={…})`, in this process or another,
    calls the function anew with the same call and key. Its n-th `Suspend` then returns the n-th recorded answer at
    once, so what a tool does before a `Suspend` must be repeatable.
    """

    payload: object = None


class Parked(BaseException):
    """A tool was closed at a `Suspend` that nobody in this process answers; `payload` is JSON text.

    Like a cancellation no failure, so a plane that turns exceptions into results lets it pass.
    """

    def __init__(self, payload: str) -> None:
        super().__init__(payload)
        self.payload = payload


class Misplaced(TypeError):
    """`Suspend` where nothing can be sent back to the tool."""

    def __init__(self) -> None:
        super().__init__(
            "Suspend was returned or yielded where no answer can come back: only an async generator tool can suspend; "
            "write `async def` and `answer = yield Suspend(…)`"
        )
