"""Ctrl-C, SIGTERM and SIGHUP: how the command leaves at once and quietly, with the terminal as it was.

A signal must end the command whatever it is at: an import, a tool that swallows every exception, a thread that is never
joined. So nothing is raised; the process ends from the handler. What a run has to end in order is ended by `pursue`.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ENDING: Final = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if sys.platform != "win32" else ()))
"""The signals that end the command; the exit code is 128 and the signal's number."""

_SHOW_CURSOR: Final = b"\x1b[?25h"
_modes: list[object] = []
"""How the terminal was set when the command began; line editing at a prompt changes it."""


def leave_on_signals() -> None:
    """From now on a signal ends the process at once. One that is ignored, as under nohup, stays ignored."""
    if not _modes:
        _modes[:] = _terminal_modes()
    on_signals(lambda number, _frame: leave(number))


def on_signals(handle: Callable[[int, FrameType | None], None]) -> None:
    """Let `handle` have the signals that end the command."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def leave(number: int) -> NoReturn:
    """End the process for a signal, from any thread: no cleanup but the terminal's, no word, exit code 128 + number."""
    with suppress(OSError):
        if os.isatty(1):
            os.write(1, _SHOW_CURSOR + b"\r\n")
    _reset_terminal()
    os._exit(128 + number)


def leave_without_waiting(code: int) -> NoReturn:
    """End the process with what is written written, but waiting for no task or thread. Raises `OSError`."""
    sys.stdout.flush()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _terminal_modes() -> list[object]:
    if sys.platform != "win32":
        import termios

        with suppress(termios.error, OSError):
            return list(termios.tcgetattr(0))
    return []


def _reset_terminal() -> None:
    if sys.platform != "win32" and _modes:
        import termios

        # A command in the background would be stopped by this signal for setting them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, _modes)  # type: ignore[arg-type]  # as tcgetattr gave them
