"""One line for each thing that happens in a run, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.cli.hint import answer_line
from deepstrike.cli.safe import one_line, visible
from deepstrike.secrets.shapes import masked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deepstrike.stream import (
        DoneEvent,
        ErrorEvent,
        NoticeEvent,
        PendingRequest,
        RetryEvent,
        ToolCallEvent,
        ToolResultEvent,
    )


def call_line(event: ToolCallEvent) -> str:
    """`→ add(x=17, y=28)`"""
    return f"→ {one_line(event.name, 80)}({_arguments(event.arguments)})"


def agent_line(path: Sequence[str], event: ToolCallEvent) -> str:
    """`searcher-2 → search(words="whales")`: what a sub-agent asked for."""
    return f"{one_line('/'.join(path), 120)} {call_line(event)}"


def result_line(event: ToolResultEvent) -> str:
    """`← 45`, `✗ add: invalid_arguments: …` for an error."""
    content = one_line(event.content)
    if event.is_error:
        return f"✗ {one_line(event.name or event.call_id, 80)}: {event.error_kind or 'error'}: {content}"
    return f"← {content or '(nothing)'}"


def retry_line(event: RetryEvent) -> str:
    """`retry 1 in 2.0 s: overloaded` of a model call, `retry 1 of look in 0.5 s: …` of a tool's."""
    tool = "" if event.name is None else f" of {one_line(event.name, 80)}"
    return f"retry {event.attempt}{tool} in {event.delay_ms / 1000:.1f} s: {one_line(event.reason)}"


def notice_line(event: NoticeEvent) -> str:
    """`note: what the model service had to tell [code]`"""
    return f"note: {one_line(event.message, 400)} [{one_line(event.code, 40)}]"


def pending_lines(pending: Iterable[PendingRequest], session_id: str | None, options: str | None = "") -> Iterator[str]:
    """What a session waits for, and how to answer: with `options`, None where the session is not kept."""
    for request in pending:
        asked = request.reason if request.reason is not None else json.dumps(request.payload, ensure_ascii=False)
        named = f"{one_line(request.name, 80)}({_arguments(request.arguments)})"
        yield f"? {one_line(request.request_id, 200)}  {request.kind} of {named}: {one_line(asked)}"
    yield masked(answer_line(session_id, options))


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
    return one_line(", ".join(visible(_argument(name, value)) for name, value in arguments.items()))


def _argument(name: str, value: object) -> str:
    """`name=value`, masked as JSON: that is where a name tells of a secret."""
    pair = masked(json.dumps({name: value}, ensure_ascii=False, default=str))
    return f"{name}={pair.removeprefix(f'{{{json.dumps(name, ensure_ascii=False)}: ').removesuffix('}')}"
