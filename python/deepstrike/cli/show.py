"""How a run is shown: on a terminal, in a pipe, or as JSON lines."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

import msgspec

from deepstrike.cli.curtains import Curtains
from deepstrike.cli.lines import (
    agent_line,
    call_line,
    done_line,
    error_line,
    notice_line,
    pending_lines,
    result_line,
    retry_line,
)
from deepstrike.cli.safe import json_line, one_line, visible
from deepstrike.clock import current_clock
from deepstrike.secrets.curtain import Curtain
from deepstrike.secrets.shapes import masked
from deepstrike.stream import (
    AgentEvent,
    DoneEvent,
    ErrorEvent,
    NoticeEvent,
    RetryEvent,
    StreamEvent,
    TextDelta,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolResultEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from _typeshed import DataclassInstance


class Show(Protocol):
    """Shows one run, event by event. Leaving the context takes down what is there only while the run goes on."""

    def __enter__(self) -> Show: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def event(self, event: StreamEvent) -> None:
        """Show `event`. Raises `BrokenPipeError` when nobody reads any more."""


def show_for(*, as_json: bool, everything_to_stdout: bool = False, options: str | None = "") -> Show:
    """The way to show a run here: rich on a terminal, else plain lines, JSON where asked for.

    In a pipe the answer goes to standard output and all else to standard error, unless `everything_to_stdout`.
    `options` are those to answer with where the run waits, None where its session is not kept.
    """
    if as_json:
        return JsonShow(sys.stdout)
    if sys.stdout.isatty():
        from deepstrike.cli.terminal import TerminalShow

        return TerminalShow(options)
    return PlainShow(sys.stdout, sys.stdout if everything_to_stdout else sys.stderr, options)


class JsonShow:
    """One JSON object a line for each event: `type`, then the event's fields. ASCII only, secrets masked."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._curtains = Curtains()

    def __enter__(self) -> JsonShow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not issubclass(kind, OSError):
            self._write(self._curtains.rest())

    def event(self, event: StreamEvent) -> None:
        self._write(self._curtains.passed(event))

    def _write(self, events: Iterable[StreamEvent]) -> None:
        for event in events:
            self._out.write(json_line(_plain(event)) + "\n")
        self._out.flush()


class PlainShow:
    """The answer's text as it comes on one stream; tools, retries, errors and the closing line on the other."""

    def __init__(self, answer: TextIO, progress: TextIO, options: str | None = "") -> None:
        self._answer = answer
        self._progress = progress
        self._options = options
        self._curtain = Curtain()
        self._line_open = False
        self._began_ms = current_clock().now_ms()

    def __enter__(self) -> PlainShow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not issubclass(kind, OSError):
            self._end_line()

    def event(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(delta) if delta:
                self._line_open = not delta.endswith("\n")
                self._say(self._curtain.passed(delta))
            case ToolCallEvent():
                self._line(call_line(event))
            case AgentEvent(path, ToolCallEvent() as call):
                self._line(agent_line(path, call))
            case ToolResultEvent():
                self._line(result_line(event))
            case RetryEvent():
                self._line(retry_line(event))
            case NoticeEvent():
                self._line(notice_line(event))
            case ErrorEvent():
                self._line(error_line(event))
            case DoneEvent():
                if event.pending:
                    self._line("\n".join(pending_lines(event.pending, event.session_id, self._options)))
                self._line(done_line(event, current_clock().now_ms() - self._began_ms))

    def _line(self, line: str) -> None:
        self._end_line()
        self._progress.write(line + "\n")
        self._progress.flush()

    def _say(self, text: str) -> None:
        self._answer.write(visible(text))
        self._answer.flush()

    def _end_line(self) -> None:
        if self._line_open:
            self._line_open = False
            self._say(self._curtain.rest() + "\n")


def progress_of(event: ToolDeltaEvent) -> str:
    """The last words of a tool's progress, short enough for a status line."""
    return one_line(masked(event.delta)[-60:], 60)


def _plain(value: object) -> object:
    """`value` as JSON types; what has no JSON form becomes its text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, StreamEvent):
        return {"type": value.type, **_fields(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)


def _fields(value: DataclassInstance) -> dict[str, object]:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
