"""One line for each thing that happens in a run, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.cli.safe import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.stream import DoneEvent, ErrorEvent, RetryEvent, ToolCallEvent, ToolResultEvent


def call_line(event: ToolCallEvent) -> str:
    """`→ add(x=17, y=28)`"""
    return f"→ {one_line(event.name, 80)}({_arguments(event.arguments)})"


def result_line(event: ToolResultEvent) -> str:
    """`← 45`, `✗ add: invalid_arguments: …` for an error."""
    if event.is_error:
        return (
            f"✗ {one_line(event.name or event.call_id, 80)}: {event.error_kind or 'error'}: {one_line(event.content)}"
        )
    return f"← {one_line(event.content) or '(nothing)'}"


def retry_line(event: RetryEvent) -> str:
    """`retry 1 in 2.0 s: overloaded`"""
    return f"retry {event.attempt} in {event.delay_ms / 1000:.1f} s: {one_line(event.reason)}"


def error_line(event: ErrorEvent) -> str:
    """`error: what happened [code]`"""
    code = f" [{event.code}]" if event.code else ""
    return f"error: {one_line(event.message, 1000)}{code}"


def done_line(event: DoneEvent, elapsed_ms: int) -> str:
    """`2 turns · 57 tokens · 0.12 s`, with the status where it is not `completed`."""
    turns = f"{event.iterations} turn{'' if event.iterations == 1 else 's'}"
    line = f"{turns} · {event.total_tokens} tokens · {elapsed_ms / 1000:.2f} s"
    return line if event.status == "completed" else f"{line} · {event.status}"


def _arguments(arguments: Mapping[str, object]) -> str:
    shown = (f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items())
    return one_line(", ".join(map(visible, shown)))
