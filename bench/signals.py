"""What signals cost: from an interrupt to the end of its run, and what a turn pays for a gateway that has nothing."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from bench.clocks import cpu_us
from bench.subject import WINDOW, Scripted
from bench.workload import TOOL_NAME, add
from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, RuntimeSignal, SignalGateway, TextDelta, tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from deepstrike.providers.base import LLMProvider, ModelEvent, ModelRequest

Samples = list[float]
INTERRUPTS = 100
TURNS = 300
STOP = RuntimeSignal("interrupt", urgency="critical")


async def words() -> AsyncIterator[TextDelta]:
    """A stream that goes on for ever, a word each time that the loop goes round."""
    while True:
        yield TextDelta("on and on ")
        await asyncio.sleep(0)


class Endless:
    """A model that never stops by itself."""

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        async for word in words():
            yield word


def at_once(begun: list[float], act: Callable[[], object]) -> None:
    """Do something in another thread; `begun` tells when."""

    def run() -> None:
        begun.append(time.perf_counter())
        act()

    threading.Thread(target=run).start()


async def interrupted() -> Samples:
    """Wall time from `ingest` in another thread to the end of the run, in ms."""
    samples: Samples = []
    for _ in range(INTERRUPTS):
        gateway = SignalGateway()
        runner = RuntimeRunner(RuntimeOptions(provider=Endless(), signal_source=gateway))
        begun: list[float] = []
        seen = 0
        async for event in runner.run_streaming("go"):
            seen += event.type == "text_delta"
            if event.type == "text_delta" and seen == 50:
                at_once(begun, partial(gateway.ingest, STOP))
        samples.append((time.perf_counter() - begun[0]) * 1000)
    return samples


async def cancelled() -> Samples:
    """The same for a bare task that reads the stream and is cancelled from another thread, in ms."""
    loop = asyncio.get_running_loop()
    samples: Samples = []
    for _ in range(INTERRUPTS):
        seen: list[TextDelta] = []
        enough = asyncio.Event()

        async def read(seen: list[TextDelta] = seen, enough: asyncio.Event = enough) -> None:
            async for word in words():
                seen.append(word)
                if len(seen) == 50:
                    enough.set()

        task = asyncio.create_task(read())
        await enough.wait()
        begun: list[float] = []
        at_once(begun, partial(loop.call_soon_threadsafe, task.cancel))
        await asyncio.wait({task})
        samples.append((time.perf_counter() - begun[0]) * 1000)
    return samples


async def heard() -> Samples:
    """CPU that a gateway without signals adds to a turn, in µs."""
    numbers = count()

    async def cpu(source: SignalGateway | None) -> float:
        provider: LLMProvider = Scripted(TURNS, ["done"], 0.0, None)
        plane = LocalExecutionPlane().register(tool(name=TOOL_NAME)(add))
        options = RuntimeOptions(
            provider=provider, execution_plane=plane, max_tokens=WINDOW, max_turns=TURNS + 1, signal_source=source
        )
        before = cpu_us()
        result = await RuntimeRunner(options).run("go", session_id=f"run-{next(numbers)}")
        if result.text != "done":
            raise RuntimeError("the run did not say what it was to say")
        return (cpu_us() - before) / (TURNS + 1)

    gateway = SignalGateway()
    samples: Samples = []
    for _ in range(12):
        gc.collect()
        samples.append(await cpu(gateway) - await cpu(None))
    return samples[2:]


async def measure(who: str, case: str) -> Samples:
    """The samples of one case."""
    if case == "signal_none":
        return await heard()
    return await (cancelled() if who == "cancelled" else interrupted())
