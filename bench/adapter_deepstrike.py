"""deepstrike from this checkout, for the side-by-side benchmark that lives outside the repository.

`make bench-peers` lays a copy of that benchmark with this file as `frameworks/deepstrike.py` and runs it with our
Python. It uses our public names only. The long history is the benchmark's own text in a session of 20 goals (a goal,
tool turns with text beside each call, a final answer), as many messages and bytes as the benchmark's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from common import API_KEY, MODEL, SYSTEM, Base, add, args_json, history_text, next_k, text_pieces  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from deepstrike import RuntimeRunner
    from deepstrike.providers.base import LLMProvider, ModelEvent, ModelRequest
    from deepstrike.sessions.base import SessionLog

Run = Callable[..., Awaitable[str]]
GOALS = 20


class Adapter(Base):  # type: ignore[misc]
    name, dists = "deepstrike", ["deepstrike"]
    import_stmt = "from deepstrike import RuntimeRunner, OpenAIProvider"

    def __init__(self) -> None:
        import deepstrike

        self.ds = deepstrike
        self.numbers = count()

    def http(self, base_url: str, max_turns: int, stream: bool = True) -> Run:
        if not stream:
            raise NotImplementedError  # the runner always streams
        return self.run(self.runner(self.openai(base_url), max_turns))

    def fake(self, n: int, sleep: float = 0.0, pieces: list[str] | None = None) -> Run:
        return self.run(self.runner(self.scripted(n, sleep, pieces or text_pieces(200, 1)), n + 5))

    def fake_with_history(self, msgs: int, words: int, mark: Callable[[], None]) -> Run:
        return self.run_after(self.scripted(0, 0.0, text_pieces(200, 1), mark), msgs, words)

    def http_with_history(self, base_url: str, msgs: int, words: int) -> Run:
        return self.run_after(self.openai(base_url), msgs, words)

    def openai(self, base_url: str) -> LLMProvider:
        provider: LLMProvider = self.ds.OpenAIProvider(API_KEY, MODEL, base_url=base_url)
        return provider

    def runner(
        self, provider: LLMProvider, turns: int, log: SessionLog | None = None, act: Callable[..., object] = add
    ) -> RuntimeRunner:
        adder = self.ds.tool(name="add", description="Add two numbers.")(act)
        options = self.ds.RuntimeOptions(
            provider=provider,
            session_log=log,
            execution_plane=self.ds.LocalExecutionPlane().register(adder),
            system_prompt=SYSTEM,
            max_tokens=1_000_000_000,
            max_turns=turns,
        )
        runner: RuntimeRunner = self.ds.RuntimeRunner(options)
        return runner

    def run(self, runner: RuntimeRunner, session_id: str | None = None) -> Run:
        async def run(prompt: str, on_text: Callable[[str], None] | None = None) -> str:
            text: list[str] = []
            async for event in runner.run_streaming(prompt, session_id=session_id or f"run-{next(self.numbers)}"):
                if event.type == "text_delta":
                    text.append(event.delta)
                    if on_text:
                        on_text(event.delta)
                elif event.type == "error":
                    raise RuntimeError(event.message)
            return "".join(text)

        return run

    def run_after(self, provider: LLMProvider, msgs: int, words: int) -> Run:
        """Each run is a further goal of one prepared session, all by one runner: it goes on in this process."""
        log: SessionLog = self.ds.InMemorySessionLog()
        run = self.run(self.runner(provider, 5, log), "long")
        ready: list[bool] = []

        async def first_prepared(prompt: str, on_text: Callable[[str], None] | None = None) -> str:
            if not ready:
                await self.prepare(log, msgs, words)
                ready.append(True)
            return await run(prompt, on_text)

        return first_prepared

    async def prepare(self, log: SessionLog, msgs: int, words: int) -> None:
        turns = msgs // GOALS // 2 - 1
        rows = (history_text(number, words) for number in range(msgs))

        async def recite(x: int, y: int) -> str:
            return str(next(rows))

        runner = self.runner(self.narrator(rows, turns), turns + 5, log, recite)
        for _ in range(GOALS):
            await runner.run(str(next(rows)), session_id="long")

    def narrator(self, rows: Iterator[str], turns: int) -> LLMProvider:
        from deepstrike.providers.base import Finish, ToolCall
        from deepstrike.wire.message import Usage

        ds, calls = self.ds, count()

        class Narrator:
            async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
                number = next(calls)
                yield ds.TextDelta(next(rows))
                if number % (turns + 1) < turns:
                    yield ToolCall(f"call_{900000 + number}", "add", '{"x": 1, "y": 2}')
                yield Usage(input=100, output=12)
                yield Finish("stop")

        return Narrator()

    def scripted(self, n: int, sleep: float, pieces: list[str], mark: Callable[[], None] | None = None) -> LLMProvider:
        from deepstrike.providers.base import Finish, ToolCall
        from deepstrike.wire.message import ResultBlock, Usage

        ds = self.ds

        class Scripted:
            async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
                if mark:
                    mark()
                if sleep:
                    await asyncio.sleep(sleep)
                last = request.turns[-1]
                turn = next_k(last.call_id if isinstance(last, ResultBlock) else None)
                if turn < n:
                    yield ToolCall(f"call_{turn}", "add", args_json(turn))
                else:
                    for piece in pieces:
                        yield ds.TextDelta(piece)
                yield Usage(input=100, output=12)
                yield Finish("stop")

        return Scripted()
