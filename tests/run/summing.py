"""A run in a small window that reads many pages, and those who summarize what leaves its prompt."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from deepstrike import SessionLog, SignalGateway
    from deepstrike.providers.base import LLMProvider
    from deepstrike.wire.message import Turn

DEMAND = "Never book before noon."


@tool(effect="read")
async def page(number: int) -> str:
    """A page of some text."""
    return f"page {number} " + "字 and words " * 150


class Reader:
    """Reads so many pages, then says that it is done."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self.turns: list[list[Turn]] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.turns.append(list(request.turns))
        number = len(self.turns)
        if number <= self._pages:
            yield TextDelta(f"Now page {number}. ")
            yield ToolCall(f"c{number}", "page", f'{{"number":{number}}}')
            yield Finish("tool_calls")
        else:
            yield TextDelta("done")
            yield Finish("stop")


class Stuck:
    """Never answers; `asked` tells that it was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.set()
        await asyncio.Event().wait()
        yield Finish("stop")


class Late:
    """Writes its summaries when it is let go; `asked` tells that it was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.set()
        await self.go.wait()
        for event in written("Pages were read."):
            yield event


def written(text: str, *, spent: int = 7) -> list[ModelEvent]:
    """A summary, and what it took."""
    return [TextDelta(text), Usage(spent, 3), Finish("stop")]


def runner(
    reader: LLMProvider,
    summarizer: LLMProvider,
    log: SessionLog,
    *,
    max_total_tokens: int | None = None,
    signals: SignalGateway | None = None,
) -> RuntimeRunner:
    """A runner in a small window."""
    return RuntimeRunner(
        RuntimeOptions(
            provider=reader,
            summarizer=summarizer,
            session_log=log,
            execution_plane=LocalExecutionPlane().register(page),
            max_tokens=3_000,
            max_turns=50,
            extensions={"max_output_tokens": 500},
            max_total_tokens=max_total_tokens,
            signal_source=signals,
        )
    )
