"""A run on a terminal: text as it streams, a status line while nothing does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

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
from deepstrike.cli.safe import one_line, visible
from deepstrike.cli.show import progress_of
from deepstrike.clock import current_clock
from deepstrike.secrets.curtain import Curtain
from deepstrike.stream import (
    AgentEvent,
    DoneEvent,
    ErrorEvent,
    NoticeEvent,
    RetryEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolResultEvent,
)

if TYPE_CHECKING:
    from types import TracebackType

    from rich.status import Status

    from deepstrike.stream import StreamEvent


class TerminalShow:
    """The answer streams in plain text between dim lines for the tools; a spinner says what is being waited for."""

    def __init__(self, options: str | None = "") -> None:
        self._options = options
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._curtain = Curtain()
        self._status: Status | None = None
        self._line_open = False
        self._began_ms = current_clock().now_ms()

    def __enter__(self) -> TerminalShow:
        self._wait("waiting for the model")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_line()

    def event(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(delta) if delta:
                self._stop_waiting()
                self._line_open = not delta.endswith("\n")
                self._console.out(visible(self._curtain.passed(delta)), end="", highlight=False)
            case ThinkingDelta():
                self._wait("thinking")
            case ToolDeltaEvent():
                self._wait(f"{one_line(event.name, 40)}: {progress_of(event)}")
            case ToolCallEvent():
                self._line(call_line(event), "cyan")
                self._wait(f"running {one_line(event.name, 40)}")
            case AgentEvent(path, ToolCallEvent() as call):
                self._line(agent_line(path, call), "cyan")
                self._wait(f"running {one_line(path[-1], 40)}")
            case ToolResultEvent():
                self._line(result_line(event), "red" if event.is_error else "green")
                self._wait("waiting for the model")
            case RetryEvent() | NoticeEvent():
                self._line(retry_line(event) if isinstance(event, RetryEvent) else notice_line(event), "yellow")
                tool = event.name if isinstance(event, RetryEvent) else None
                self._wait("waiting for the model" if tool is None else f"running {one_line(tool, 40)}")
            case ErrorEvent():
                self._line(error_line(event), "bold red")
            case DoneEvent():
                self._done(event)

    def _done(self, event: DoneEvent) -> None:
        if event.pending:
            self._line("\n".join(pending_lines(event.pending, event.session_id, self._options)), "yellow")
        self._line(done_line(event, current_clock().now_ms() - self._began_ms), "dim")

    def _line(self, line: str, style: str) -> None:
        self._end_line()
        self._console.print(line, style=style)

    def _end_line(self) -> None:
        self._stop_waiting()
        if self._line_open:
            self._line_open = False
            self._console.out(visible(self._curtain.rest()), highlight=False)

    def _wait(self, what: str) -> None:
        if self._line_open:
            return  # the spinner would overwrite the line that is being written
        if self._status is None:
            self._status = self._console.status(what)
            self._status.start()
        else:
            self._status.update(what)

    def _stop_waiting(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
