"""The one workload that every contestant does: add numbers by a tool, then say a text."""

from __future__ import annotations

import json
from dataclasses import dataclass

PROMPT = "Keep adding the numbers that you are told to add, then say what you did."
SYSTEM = "You are a careful adder."
MODEL = "bench"
API_KEY = "sk-bench"
TOOL_NAME = "add"
TOOL_TEXT = "Add two numbers."
TOOL_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
}
GOALS, TURNS_A_GOAL = 20, 249
ROWS_A_GOAL = 2 * TURNS_A_GOAL + 2


@dataclass
class Tally:
    """How often the tool ran: the proof that a contestant did the whole work."""

    runs: int = 0


tally = Tally()


async def add(x: int, y: int) -> str:
    """Add two numbers."""
    tally.runs += 1
    return str(x + y)


def arguments(turn: int) -> str:
    """The arguments of the scripted call of this turn, as JSON text."""
    return json.dumps({"x": turn, "y": turn + 1})


def pieces(count: int = 50) -> list[str]:
    """The final text, in as many deltas."""
    return [f"piece {number % 97:02d} of the text " for number in range(count)]


def turn_after(call_id: str | None) -> int:
    """The scripted model's whole state: the turn behind the newest result (`call_7` → 8), 0 when there is none."""
    return 0 if call_id is None else int(call_id.rpartition("_")[2]) + 1


def history_text(number: int) -> str:
    """One message of the long history: 45 words."""
    return f"message {number}: " + " ".join(f"tok{(number * 31 + word) % 9973}" for word in range(45))


def chat_history() -> list[dict[str, object]]:
    """10,000 chat messages: `GOALS` goals of `TURNS_A_GOAL` tool turns and a final answer each."""
    rows: list[dict[str, object]] = []
    for goal in range(GOALS):
        rows.append({"role": "user", "content": history_text(len(rows))})
        for turn in range(TURNS_A_GOAL):
            call = {"id": f"call_{goal}x{turn}", "type": "function"}
            function = {"name": TOOL_NAME, "arguments": arguments(turn)}
            said = history_text(len(rows))
            rows.append({"role": "assistant", "content": said, "tool_calls": [{**call, "function": function}]})
            rows.append({"role": "tool", "tool_call_id": call["id"], "content": history_text(len(rows))})
        rows.append({"role": "assistant", "content": history_text(len(rows))})
    return rows


def chat_messages(history: list[dict[str, object]]) -> list[dict[str, object]]:
    """The messages of a request: system text, history, the prompt."""
    return [{"role": "system", "content": SYSTEM}, *history, {"role": "user", "content": PROMPT}]


CHAT_TOOLS = [
    {"type": "function", "function": {"name": TOOL_NAME, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}}
]


def compact(value: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()
