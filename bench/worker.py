"""Measures one case of one contestant in this fresh process and prints the samples as one JSON line."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

from bench.clocks import cpu_us, forget_peak, resident, resident_peak
from bench.workload import arguments, pieces, tally

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.contestant import Contestant, OnText, Run

Samples = list[float]


def contestant(name: str) -> Contestant:
    """Import and build the contestant of this process, and nothing of the others."""
    if name == "deepstrike":
        from bench.subject import Deepstrike

        return Deepstrike()
    from bench import floors

    known: dict[str, Contestant] = {"bare": floors.Bare(), "aiohttp": floors.Aiohttp(), "asyncio": floors.RawAsyncio()}
    return known[name]


async def measured(run: Run, turns: int, want: str, on_text: OnText | None = None) -> float:
    """CPU of one whole run, in µs; it must have done all the work."""
    tally.runs = 0
    before = cpu_us()
    text = await run(on_text)
    used = cpu_us() - before
    if (tally.runs, text) != (turns, want):
        raise RuntimeError(f"wanted {turns} tool runs and {want[:40]!r}, got {tally.runs} and {text[:40]!r}")
    return used


async def http_turn(who: Contestant, base: str) -> Samples:
    """CPU a turn, 50 tool turns over HTTP."""
    run, turns = who.over_http(f"{base}/50/v1"), 50
    await measured(run, turns, "".join(pieces()))
    gc.collect()
    return [await measured(run, turns, "".join(pieces())) / (turns + 1) for _ in range(3)]


def turns_of(turns: int, runs: int) -> Callable[[Contestant, str], Coroutine[None, None, Samples]]:
    """CPU a turn in process, for a run of so many turns."""

    async def case(who: Contestant, base: str) -> Samples:
        await measured(who.in_process(10, ["done"]), 10, "done")
        run = who.in_process(turns, ["done"])
        gc.collect()
        return [await measured(run, turns, "done") / (turns + 1) for _ in range(runs)]

    return case


async def growth(who: Contestant, base: str) -> Samples:
    """CPU of the last 1,000 of 10,000 turns over that of the first 1,000."""
    marks: dict[int, float] = {}

    def on_turn(turn: int) -> None:
        if turn % 1000 == 0:
            marks[turn] = cpu_us()

    await measured(who.in_process(1000, ["done"]), 1000, "done")
    await measured(who.in_process(10_000, ["done"], on_turn=on_turn), 10_000, "done")
    return [(marks[10_000] - marks[9_000]) / (marks[1_000] - marks[0])]


async def retained(who: Contestant, base: str) -> Samples:
    """Resident bytes that a turn leaves behind while its run lives, less the text of its two messages.

    Taken between turn 1,000 and turn 10,000, each time after a full collection, so that warm-up does not count.
    """
    marks: dict[int, int] = {}

    def on_turn(turn: int) -> None:
        if turn in (1_000, 10_000):
            gc.collect()
            marks[turn] = resident()

    await measured(who.in_process(10_000, ["done"], on_turn=on_turn), 10_000, "done")
    text = sum(len(f"call_{turn}add{arguments(turn)}{turn * 2 + 1}") for turn in range(1_000, 10_000))
    return [(marks[10_000] - marks[1_000] - text) / 9_000]


async def first_text(who: Contestant, base: str) -> Samples:
    """Wall time from the start of a run to its first text, over HTTP: the median of 200 runs of this process."""
    run, want = who.over_http(f"{base}/0/v1"), "".join(pieces())
    samples: Samples = []
    for number in range(205):
        seen: list[float] = []
        start = time.perf_counter()
        await measured(run, 0, want, lambda _, seen=seen: seen.append(time.perf_counter()))  # type: ignore[misc]
        if number >= 5:
            samples.append((seen[0] - start) * 1e6)
    return [median(samples)]


async def text_delta(who: Contestant, base: str) -> Samples:
    """CPU that one more text delta costs, in process."""
    many = pieces(2000)
    short, long = who.in_process(0, many[:1]), who.in_process(0, many)
    seen: list[str] = []
    samples: Samples = []
    for _ in range(6):
        base_us = await measured(short, 0, many[0], seen.append)
        samples.append((await measured(long, 0, "".join(many), seen.append) - base_us) / (len(many) - 1))
    return samples[1:]


async def goes_on(who: Contestant, base: str) -> Samples:
    """CPU of a further goal behind 10,000 messages, over HTTP, by whoever pursued the goal before it."""
    run = await who.behind_history(f"{base}/0/v1")
    samples: Samples = []
    for _ in range(6):
        gc.collect()
        samples.append(await measured(run, 0, "".join(pieces())))
    return samples[1:]


async def folded(who: Contestant, base: str) -> Samples:
    """CPU of one goal behind 10,000 messages, over HTTP, by whoever has only what is stored of them."""
    fresh = await who.from_history(f"{base}/0/v1")
    samples: Samples = []
    for _ in range(4):
        run = await fresh()
        gc.collect()
        samples.append(await measured(run, 0, "".join(pieces())))
    return samples[1:]


async def agents(who: Contestant, base: str) -> Samples:
    """Peak resident KiB that each of 500 runs at once adds."""
    run = who.in_process(10, ["done"], sleep=0.005)
    await measured(run, 10, "done")
    gc.collect()
    forget_peak()
    before, tally.runs = resident(), 0
    texts = await asyncio.gather(*(run(None) for _ in range(500)))
    if (tally.runs, set(texts)) != (5_000, {"done"}):
        raise RuntimeError(f"not all agents did their work: {tally.runs} tool runs")
    return [(resident_peak() - before) / 500 / 1024]


async def decode(who: Contestant, base: str) -> Samples:
    """CPU of reading one event of a streamed answer, without a socket."""
    from bench.server import text_answer

    body = [chunk.split(b"\r\n", 1)[1].removesuffix(b"\r\n") for chunk in text_answer(0)[1:-1]]
    body.append(b"data: [DONE]\n\n")
    samples: Samples = []
    for _ in range(10):
        before = cpu_us()
        for _ in range(200):
            if who.decoded(body) != len(pieces()):
                raise RuntimeError("not all text deltas were found")
        samples.append((cpu_us() - before) / 200 / len(body))
    return samples[1:]


async def decision(_: Contestant, base: str) -> Samples:
    """CPU of one decision of governance."""
    from bench.governance import decisions

    return decisions()


async def governed(_: Contestant, base: str) -> Samples:
    """CPU that governance adds to a turn."""
    from bench import governance

    return await governance.governed()


CASES: dict[str, Callable[[Contestant, str], Coroutine[None, None, Samples]]] = {
    "http_turn": http_turn,
    "turns_10": turns_of(10, 60),
    "turns_300": turns_of(300, 5),
    "turns_10000": turns_of(10_000, 1),
    "growth": growth,
    "retained": retained,
    "first_text": first_text,
    "text_delta": text_delta,
    "goes_on": goes_on,
    "folded": folded,
    "agents": agents,
    "decode": decode,
    "decision": decision,
    "governed": governed,
}


def main() -> None:
    """`python -m bench.worker CONTESTANT CASE BASE_URL`"""
    who, case, base = sys.argv[1:4]
    if case in CASES:
        samples = asyncio.run(CASES[case](contestant(who), base))
    elif case.startswith("memory_"):
        from bench import memories

        samples = memories.measure(who, case)
    elif case.startswith("signal_"):
        from bench import signals

        samples = asyncio.run(signals.measure(who, case))
    elif case.startswith(("decode_", "encode_")):
        from bench import dialects

        samples = dialects.measure(who, case)
    else:
        from bench import logs

        samples = asyncio.run(logs.measure(who, case))
    print(json.dumps(samples), flush=True)
    os._exit(0)  # nobody's exit hooks stand in the way of the next process


if __name__ == "__main__":
    main()
