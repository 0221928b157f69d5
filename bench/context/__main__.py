"""`python -m bench.context [FILE] [--json FILE]`: caches, cost and memory of compressed sessions, without a model.

FILE holds recorded dialogues (tau-bench's form); without one only generated dialogues are replayed. `--json` writes one
line for each figure. Nothing is asked of the network.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from bench.context import arguments, ours, prompts, render
from bench.context.caches import RULES, Bill, bill
from bench.context.demands import WINDOWS, kept_demands
from bench.context.dialogues import generated, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.context.dialogues import Dialogue
    from bench.context.prompts import Prompt

    Line = dict[str, object]

# Least rates by window, None for a session each; and how much dearer the literal layout must be at least.
AIMS = {128_000: (0.990, 10.0), 32_000: (0.970, 7.0), None: (0.895, 2.0)}
ROOMS = {500: 0.93, 1_000: 0.99, 2_000: 0.998}
_WIDE = 128_000


def sessions(dialogues: Sequence[Dialogue], window: int | None) -> list[Sequence[Dialogue]]:
    """All dialogues one after the other in one session, or a session for each."""
    return [[dialogue] for dialogue in dialogues] if window is None else [dialogues]


def billed(made: Sequence[Iterator[Prompt]], *, marked: bool) -> dict[str, Bill]:
    """The sums of several sessions by each set of rules."""
    sums = {rules.name: Bill() for rules in RULES}
    for session in made:
        for name, each in bill(session, marked=marked).items():
            total = sums[name]
            total.tokens += each.tokens
            total.hits += each.hits
            total.fresh += each.fresh
            total.cost += each.cost
    return sums


def cache_lines(dialogues: Sequence[Dialogue], source: str) -> Iterator[Line]:
    """Hits and cost by window, rules and layout."""
    for window, (rate, times) in AIMS.items():
        budget = window or _WIDE
        runs = sessions(dialogues, window)
        own = billed([ours.requests(each, budget) for each in runs], marked=True)
        others = {
            name: billed([prompts.requests(each, name, budget) for each in runs], marked=False)
            for name in prompts.BASELINES
        }
        for rules in RULES:
            mine = own[rules.name]
            yield {
                "figure": "cache hits",
                "dialogues": source,
                "window": window,
                "rules": rules.name,
                "reached": round(mine.rate, 4),
                "aim": rate,
                "append_only": round(mine.bound, 4),
                "cost_over_append_only": round(mine.cost / mine.bound_cost(rules), 3),
                "literal_over_ours": round(others["literal"][rules.name].cost / mine.cost, 2),
                "literal_aim": times if rules.name == "anthropic" else None,
                **{f"{name}_layout": round(bills[rules.name].rate, 4) for name, bills in others.items()},
            }


def argument_lines(dialogues: Sequence[Dialogue], source: str) -> Iterator[Line]:
    """How many of the values that calls need are visible."""
    for room, aim in ROOMS.items():
        reached, most = arguments.of_ours(dialogues, room)
        yield {
            "figure": "arguments visible",
            "dialogues": source,
            "room": room,
            "reached": round(reached, 4),
            "aim": aim,
            "history_at_most": most,
            "window_layout": round(arguments.of_window(dialogues, room), 4),
        }


def lines(path: Path | None) -> Iterator[Line]:
    """All figures."""
    sources: dict[str, Callable[[], list[Dialogue]]] = {"generated": lambda: generated(60, 7)}
    if path is not None:
        sources = {"recorded": lambda: recorded(path), **sources}
    for source, load in sources.items():
        dialogues = load()
        yield from cache_lines(dialogues, source)
        yield from argument_lines(dialogues, source)
    for window in WINDOWS:
        kept, planted, passes = kept_demands(window)
        yield {"figure": "demands kept", "window": window, "passes": passes, "reached": kept, "aim": planted}
    yield render_line()


def render_line() -> Line:
    """What a turn costs in the kernel behind a short and a long history."""
    short, long = render.microseconds(100), render.microseconds(10_000)
    times = {"messages_100_us": round(short, 1), "messages_10000_us": round(long, 1)}
    return {"figure": "render per turn", **times, "ratio": round(long / short, 2), "aim": 1.3}


def main() -> None:
    """Print the figures, a line each."""
    parser = argparse.ArgumentParser(prog="python -m bench.context", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    told = []
    for line in lines(asked.file):
        told.append(json.dumps(line))
        print(told[-1], flush=True)
    if asked.json is not None:
        asked.json.write_text("\n".join(told) + "\n")


if __name__ == "__main__":
    main()
