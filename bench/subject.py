"""deepstrike itself, through its public names only."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from bench.workload import (
    API_KEY,
    GOALS,
    MODEL,
    PROMPT,
    ROWS_A_GOAL,
    SYSTEM,
    TOOL_NAME,
    TOOL_TEXT,
    TURNS_A_GOAL,
    add,
    arguments,
    history_text,
    turn_after,
)
from deepstrike import (
    DoneEvent,
    InMemorySessionLog,
    LocalExecutionPlane,
    OpenAIProvider,
    RuntimeOptions,
    RuntimeRunner,
    TextDelta,
    tool,
)
from deepstrike.providers.base import Finish, LLMProvider, ModelEvent, ModelRequest, ToolCall
from deepstrike.wire.message import ResultBlock, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bench.contestant import OnText, OnTurn, Run
    from deepstrike.sessions.base import SessionLog

WINDOW = 1_000_000_000


class Scripted:
    """A model that calls `add` for so many turns and then says its text; each answer costs it next to nothing."""

    def __init__(self, turns: int, said: list[str], sleep: float, on_turn: OnTurn | None) -> None:
        self.turns, self.said, self.sleep, self.on_turn = turns, said, sleep, on_turn

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        last = request.turns[-1]
        turn = turn_after(last.call_id if isinstance(last, ResultBlock) else None)
        if self.on_turn:
            self.on_turn(turn)
        if self.sleep:
            import asyncio

            await asyncio.sleep(self.sleep)
        if turn < self.turns:
            yield ToolCall(f"call_{turn}", TOOL_NAME, arguments(turn))
        else:
            for piece in self.said:
                yield TextDelta(piece)
        yield Usage(input=100, output=12)
        yield Finish("stop")


class Narrator:
    """Says the rows of the long history, one goal after the other."""

    def __init__(self) -> None:
        self.goal = self.turn = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta(history_text(self.goal * ROWS_A_GOAL + 1 + 2 * self.turn))
        if self.turn < TURNS_A_GOAL:
            yield ToolCall(f"call_{self.goal}x{self.turn}", TOOL_NAME, arguments(self.turn))
        yield Usage(input=100, output=12)
        yield Finish("stop")
        self.turn += 1

    async def recite(self, x: int, y: int) -> str:
        return history_text(self.goal * ROWS_A_GOAL + 2 + 2 * x)


def runner(
    provider: LLMProvider, turns: int, log: SessionLog, act: Callable[..., Awaitable[str]] = add
) -> RuntimeRunner:
    """A runner with the tool `add`, done by `act`."""
    named = tool(name=TOOL_NAME, description=TOOL_TEXT)(act)
    return RuntimeRunner(
        RuntimeOptions(
            provider=provider,
            session_log=log,
            execution_plane=LocalExecutionPlane().register(named),
            system_prompt=SYSTEM,
            max_tokens=WINDOW,
            max_turns=turns + 5,
        )
    )


async def said_by(source: RuntimeRunner, session_id: str, on_text: OnText | None) -> str:
    """Run the prompt and join the text of its last turn."""
    text: list[str] = []
    async for event in source.run_streaming(PROMPT, session_id=session_id):
        if event.type == "text_delta":
            text.append(event.delta)
            if on_text:
                on_text(event.delta)
        elif event.type == "done":
            require_completed(event)
    return "".join(text)


def require_completed(event: DoneEvent) -> None:
    """A run that ended otherwise has measured nothing."""
    if event.status != "completed":
        raise RuntimeError(f"the run ended {event.status} after {event.iterations} turns")


async def history_records() -> list[bytes]:
    """The records of a session that holds the 10,000 messages."""
    log, narrator = InMemorySessionLog(), Narrator()
    source = runner(narrator, TURNS_A_GOAL, log, narrator.recite)
    for narrator.goal in range(GOALS):
        narrator.turn = 0
        await source.run(history_text(narrator.goal * ROWS_A_GOAL), session_id="long")
    return await log.read("long")


async def log_of(records: list[bytes]) -> SessionLog:
    """A fresh log that holds them."""
    log = InMemorySessionLog()
    owner = await log.acquire("long")
    await log.append("long", records, 0, owner=owner)
    await log.release("long", owner)
    return log


class Deepstrike:
    """The runner, its session in memory."""

    def over_http(self, base_url: str) -> Run:
        source = runner(OpenAIProvider(API_KEY, MODEL, base_url=base_url), 100, InMemorySessionLog())
        numbers = count()

        async def run(on_text: OnText | None) -> str:
            return await said_by(source, f"run-{next(numbers)}", on_text)

        return run

    def in_process(self, turns: int, said: list[str], sleep: float = 0.0, on_turn: OnTurn | None = None) -> Run:
        source = runner(Scripted(turns, said, sleep, on_turn), turns, InMemorySessionLog())
        numbers = count()

        async def run(on_text: OnText | None) -> str:
            return await said_by(source, f"run-{next(numbers)}", on_text)

        return run

    async def behind_history(self, base_url: str) -> Run:
        source = runner(OpenAIProvider(API_KEY, MODEL, base_url=base_url), 100, await log_of(await history_records()))
        return lambda on_text: said_by(source, "long", on_text)

    async def from_history(self, base_url: str) -> Callable[[], Awaitable[Run]]:
        records = await history_records()
        provider = OpenAIProvider(API_KEY, MODEL, base_url=base_url)

        async def fresh() -> Run:
            source = runner(provider, 100, await log_of(records))
            return lambda on_text: said_by(source, "long", on_text)

        return fresh

    def decoded(self, pieces: list[bytes]) -> int:
        from deepstrike.providers.dialects.chat.decode import ChatDecoder
        from deepstrike.providers.dialects.sse import SseReader
        from deepstrike.providers.faults import Faults
        from deepstrike.providers.redact import Mask

        reader, decoder = SseReader(), ChatDecoder({}, Faults(Mask(())))
        events = [event for piece in pieces for event in decoder.feed(reader.push(piece))]
        return sum(isinstance(event, TextDelta) for event in [*events, *decoder.end()])
