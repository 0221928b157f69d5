"""Sessions to replay: real runs with a scripted model, and kernels driven by hand where no run gets to so easily."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from deepstrike import InMemorySessionLog, LocalExecutionPlane, ProviderError, RuntimeOptions, RuntimeRunner, tool
from deepstrike.errors import RunFailed
from deepstrike.kernel import Kernel
from deepstrike.providers.base import Artefact, Finish, ModelEvent, ToolCall
from deepstrike.providers.scripted import Reply as Spoken
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing import ManualClock
from deepstrike.wire.effect import AskUser, CallModel, RunTool
from deepstrike.wire.input import (
    Answer,
    Fault,
    Input,
    Interrupt,
    Notify,
    Reply,
    Result,
    Resume,
    SetPolicy,
    Start,
    Suspend,
    Value,
)
from deepstrike.wire.message import CallPart, Ok, Text, ToolResult, ToolSpec, Usage
from deepstrike.wire.policy import Config, Limits, Model, Policy
from deepstrike.wire.signal import Signal


@tool
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


@tool(effect="read")
async def late() -> str:
    """Come back a little later."""
    await asyncio.sleep(0)
    return "late"


@tool
async def hang() -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return "never"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("on purpose")


def calls(*wanted: ToolCall) -> list[ModelEvent]:
    """A reply that is tool calls and nothing else."""
    return [*wanted, Finish("tool_calls")]


SUM = ToolCall("c1", "add", '{"x": 17, "y": 28}')


def runner_of(log: InMemorySessionLog, *replies: Spoken, **options: object) -> RuntimeRunner:
    """A runner with four tools and a scripted model."""
    plane = LocalExecutionPlane().register(add, late, hang, fail)
    known = {"max_turns": 5, "max_total_tokens": None, "timeout_ms": None, **options}
    return RuntimeRunner(
        RuntimeOptions(
            provider=ScriptedProvider(replies),
            session_log=log,
            execution_plane=plane,
            max_turns=_number(known["max_turns"]) or 5,
            max_total_tokens=_number(known["max_total_tokens"]),
            timeout_ms=_number(known["timeout_ms"]),
        )
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


async def run(runner: RuntimeRunner, goal: str = "What is 17 + 28?") -> None:
    """Run a goal of session "s" to whatever end."""
    with suppress(RunFailed):
        await runner.run(goal, session_id="s")


async def plain() -> list[bytes]:
    log = InMemorySessionLog()
    await run(runner_of(log, "It is 45."))
    return await log.read("s")


async def tools() -> list[bytes]:
    log = InMemorySessionLog()
    thinking: list[ModelEvent] = [ThinkingDelta("Adding."), Artefact("scripted", '{"kept":1}'), SUM, Usage(100, 10, 4)]
    await run(runner_of(log, thinking, "It is 45.", "Again 45."))
    await run(runner_of(log, "Again 45."), "Once more?")
    return await log.read("s")


async def parallel() -> list[bytes]:
    log = InMemorySessionLog()
    wanted = [ToolCall("", "late", "{}"), SUM, ToolCall("c1", "fail", "{}"), ToolCall("c4", "nowhere", "{}")]
    bad = ToolCall("c5", "add", '{"x": ')
    await run(runner_of(log, calls(*wanted, bad), "It is 45."))
    return await log.read("s")


async def cut() -> list[bytes]:
    log = InMemorySessionLog()
    broken: list[ModelEvent] = [TextDelta("It "), TextDelta("is")]
    runner = RuntimeRunner(
        RuntimeOptions(provider=ScriptedProvider([broken, ProviderError("gone")], complete=False), session_log=log)
    )
    await run(runner)
    await run(runner, "And now?")
    await run(runner_of(log, "It is 45."), "And then?")
    return await log.read("s")


async def limited() -> list[bytes]:
    log = InMemorySessionLog()
    with ManualClock() as clock:
        await run(runner_of(log, calls(SUM), calls(SUM), calls(SUM), max_turns=2))
        used: list[ModelEvent] = [SUM, Usage(5000, 10), Finish("tool_calls")]
        await run(runner_of(log, used, max_total_tokens=4000), "Cheaply now.")
        late = asyncio.create_task(run(runner_of(log, calls(ToolCall("h", "hang", "{}")), timeout_ms=1000), "Quick!"))
        await clock.advance(2)
        await late
    return await log.read("s")


async def endings() -> list[bytes]:
    """Replies that end the goal otherwise than by an answer."""
    log = InMemorySessionLog()
    await run(runner_of(log, [], []))
    await run(runner_of(log, [TextDelta("It is for"), Finish("length")]), "Longer.")
    await run(runner_of(log, [SUM, ToolCall("c2", "add", "{"), Finish("length")]), "Cut calls.")
    await run(runner_of(log, [TextDelta("It"), Finish("content_filter")]), "Filtered.")
    return await log.read("s")


async def stopped() -> list[bytes]:
    log = InMemorySessionLog()
    runner = runner_of(log, calls(SUM, ToolCall("h", "hang", "{}")))
    async with runner.run_streaming("Hang.", session_id="s") as events:
        async for event in events:
            if event.type == "tool_result":
                runner.interrupt()
    await run(runner_of(log, "It is 45."))
    return await log.read("s")


CONFIG = Config(
    session="s",
    system="Be brief.",
    preload=("It is late.",),
    tools=(ToolSpec("write", "writes", "{}"), ToolSpec("look", "looks", "{}", "read")),
    policy=Policy(),
    limits=Limits(max_turns=25, window=100_000, reserve=1000, parallel=1),
    model=Model("m"),
)
TWO_CALLS = (CallPart("a", "write", "{}", Ok()), CallPart("b", "look", "{}", Ok()))


class Hand:
    """A kernel driven by hand, a millisecond an input."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.records: list[bytes] = []
        self.now = 1000

    def take(self, item: Input) -> None:
        """One input."""
        self.now += 1
        self.records += self.kernel.accept(item, self.now)

    def start(self, goal: str = "Do it.") -> None:
        self.take(Start((Text(goal),), CONFIG))

    def reply(self, *parts: CallPart | Text, **more: object) -> None:
        fault = more.get("fault")
        complete = "fault" not in more
        self.take(
            Reply(
                self.owed_model(),
                parts,
                "stop" if complete else "interrupted",
                usage=Usage(100, 10),
                complete=complete,
                fault=fault if isinstance(fault, Fault) else None,
            )
        )

    def owed_model(self) -> int:
        return next(effect.id for effect in self.kernel.pending() if isinstance(effect, CallModel))

    def running(self) -> int:
        return next(effect.id for effect in self.kernel.pending() if isinstance(effect, RunTool))

    def asked(self) -> int:
        return next(effect.id for effect in self.kernel.pending() if isinstance(effect, AskUser))

    def result(self, text: str = "r", kind: str = "") -> None:
        self.take(Result(self.running(), ToolResult((Text(text),), kind)))

    def crash(self) -> None:
        """The process ends; another one folds the log."""
        self.kernel = Kernel.replay(self.records)


async def suspended() -> list[bytes]:
    hand = Hand()
    hand.start()
    hand.reply(*TWO_CALLS)
    hand.take(Suspend(hand.running(), '{"which":1}'))
    hand.result()
    hand.crash()
    hand.take(Resume(CONFIG))
    hand.take(Answer(hand.asked(), Value('"this one"')))
    hand.result("wrote")
    hand.reply(Text("Done."))
    return hand.records


async def resumed() -> list[bytes]:
    hand = Hand()
    hand.start()
    hand.take(Resume(CONFIG))
    hand.reply(*TWO_CALLS)
    hand.crash()
    hand.take(Resume(CONFIG))
    hand.take(SetPolicy(Policy()))
    hand.result("seen")
    hand.reply(Text("Hal"), fault=Fault("stalled", "it stalled", retryable=True))
    hand.take(Resume(CONFIG))
    hand.reply(Text("f done"), fault=None)
    hand.take(Interrupt("enough"))
    hand.take(Resume(CONFIG))
    hand.reply(Text("Done."))
    return hand.records


async def disturbed() -> list[bytes]:
    """Signals of every force, and goals that come over open calls."""
    hand = Hand()
    hand.start()
    hand.reply(*TWO_CALLS)
    hand.take(Notify(Signal("news", '{"n":1}', urgency="low", dedupe_key="k")))
    hand.take(Notify(Signal("news", '{"n":2}', urgency="high")))
    hand.start("Something else.")
    hand.reply(*TWO_CALLS)
    hand.result("the tool says so", "cancelled")
    hand.take(Interrupt("enough"))
    hand.start("A third one.")
    hand.reply(*TWO_CALLS)
    hand.take(Suspend(hand.running(), "{}"))
    hand.start("A fourth one.")
    hand.reply(*TWO_CALLS)
    hand.take(Notify(Signal("interrupt", "{}", urgency="critical")))
    return hand.records


@tool(effect="read")
async def page(number: int) -> str:
    """A page of some text, the eighth a long one."""
    return f"page {number} " + "字 and words " * (26 if number < 8 else 90)


async def compressed() -> list[bytes]:
    """More results than the window holds."""
    log = InMemorySessionLog()
    replies: list[Spoken] = [calls(ToolCall(f"c{n}", "page", f'{{"number":{n}}}')) for n in range(1, 9)]
    runner = RuntimeRunner(
        RuntimeOptions(
            provider=ScriptedProvider([*replies, "They are read.", "As I said."]),
            session_log=log,
            execution_plane=LocalExecutionPlane().register(page),
            max_tokens=1_100,
            max_turns=40,
        )
    )
    await run(runner, "Read all pages.")
    await run(runner, "And?")
    return await log.read("s")


_MAKERS: tuple[Callable[[], Awaitable[list[bytes]]], ...] = (
    plain,
    tools,
    parallel,
    cut,
    limited,
    endings,
    stopped,
    suspended,
    resumed,
    disturbed,
    compressed,
)
SESSIONS = {make.__name__: make for make in _MAKERS}


async def recorded(name: str) -> list[bytes]:
    """The records of a session, made under a clock that stands still but where the session itself moves it."""
    if name == "limited":
        return await limited()
    with ManualClock():
        return await SESSIONS[name]()
