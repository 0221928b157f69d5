"""What is measured, against which floor, and what must be reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    With a `floor`, `must` and `aim` bound the ratio of our median to the floor's; without one they bound our median
    itself. Without them the figure is reported and not judged. `reps` is how many fresh processes each contestant gets.
    """

    case: str
    name: str
    unit: str
    must: float | None
    aim: float | None
    floor: str = ""
    reps: int = 5


FIGURES = (
    Figure("http_turn", "50 tool turns over HTTP, CPU a turn", "µs", 1.5, 1.0, "aiohttp"),
    Figure("turns_10", "in process, 10 turns, CPU a turn", "µs", 9, 4, "bare"),
    Figure("turns_300", "in process, 300 turns, CPU a turn", "µs", 9, 4, "bare"),
    Figure("turns_10000", "in process, 10,000 turns, CPU a turn", "µs", 9, 4, "bare", reps=3),
    Figure("growth", "last 1,000 of 10,000 turns / first 1,000", "×", 1.3, 1.1, reps=3),
    Figure("retained", "retained a tool turn beyond its text", "bytes", 2048, 1024, reps=2),
    Figure("first_text", "first text event over HTTP, wall", "µs", 2, 1.2, "aiohttp"),
    Figure("text_delta", "one more text delta in process, CPU", "µs", 4, 2, "bare"),
    Figure("goes_on", "10,000 messages over HTTP, goes on in this process, CPU", "µs", 1.5, 1.0, "asyncio", reps=3),
    Figure("folded", "10,000 messages over HTTP, folded from the log, CPU", "µs", None, None, "asyncio", reps=3),
    Figure("agents", "500 agents at once, each", "KiB", 40, 20, reps=3),
    Figure("sqlite_append", "SQLite append of a batch, CPU", "µs", 1.5, 1.2, "sqlite"),
    Figure("sqlite_100", "SQLite session beyond memory, 100 turns, CPU a turn", "µs", 60, 40),
    Figure("sqlite_1000", "SQLite session beyond memory, 1,000 turns, CPU a turn", "µs", 60, 40),
    Figure("file_100", "file session beyond memory, 100 turns, CPU a turn", "µs", 60, 40),
    Figure("file_1000", "file session beyond memory, 1,000 turns, CPU a turn", "µs", 60, 40),
    Figure("fold", "folding a log, wall a record", "µs", 10, 5, reps=3),
    Figure("resume_sqlite", "resuming 10,000 turns from SQLite, wall", "s", 1, 0.5, reps=2),
    Figure("resume_file", "resuming 10,000 turns from a file, wall", "s", 1, 0.5, reps=2),
    Figure("decode", "one streamed event: reader and decoder, CPU", "µs", 1.5, 1.0, "aiohttp"),
    Figure("decode_chat", "the same, against json.loads: chat completions", "µs", 1.0, 0.8, "json"),
    Figure("decode_messages", "the same: messages", "µs", 1.0, 0.8, "json"),
    Figure("decode_responses", "the same: Responses", "µs", 1.0, 0.8, "json"),
    Figure("decode_gemini", "the same: Gemini", "µs", 1.0, 0.8, "json"),
    Figure("decode_ollama", "the same: Ollama", "µs", 1.0, 0.8, "json"),
    Figure("encode_chat", "encoding a turn, the last of 300 / the first: chat completions", "×", 2.0, 1.5),
    Figure("encode_messages", "the same: messages", "×", 2.0, 1.5),
    Figure("encode_responses", "the same: Responses", "×", 2.0, 1.5),
    Figure("encode_gemini", "the same: Gemini", "×", 2.0, 1.5),
    Figure("encode_ollama", "the same: Ollama", "×", 2.0, 1.5),
    Figure("decision", "one decision of a policy with 38 rules, CPU", "µs", 5, 3),
    Figure("governed", "that policy in front of every call, CPU a turn", "µs", 20, 10),
    Figure("signal_stop", "interrupt signal to stopped, in mid-stream, wall", "ms", 50, 10, reps=3),
    Figure(
        "signal_stop_beside", "the same, against a bare task that is cancelled", "ms", None, None, "cancelled", reps=3
    ),
    Figure("signal_none", "a gateway that has nothing, in process, CPU it adds to a turn", "µs", 5, 2, reps=3),
    Figure("memory_missed", "evidence not among the first ten found", "%", 0.95, 0.9, "neighbours", reps=1),
    Figure("memory_stale", "keyed facts of which another value than the current one is found", "%", 0, 0, reps=1),
    Figure("memory_search", "search among 100,000 memories, wall, 95th percentile", "ms", 50, 10, reps=1),
    Figure("import_cpu", "import deepstrike, CPU", "ms", 2.2, 1.5, "interpreter", reps=15),
    Figure("import_memory", "import deepstrike, resident", "MB", 35, 25, reps=3),
)

HEAVY = ("aiohttp", "pydantic", "pydantic_core", "click", "rich", "yaml", "asyncio")
"""Modules that `import deepstrike` must not bring in."""
