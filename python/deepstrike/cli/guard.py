"""How a command ends when something goes wrong: one clear line and the right exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from deepstrike.cli import exits
from deepstrike.cli.safe import one_line
from deepstrike.errors import ConfigError, DeepStrikeError

if TYPE_CHECKING:
    from collections.abc import Callable


def guarded(work: Callable[[], int]) -> int:
    """The exit code of `work`; our errors, a missing module, Ctrl-C and a closed pipe give codes, no traceback."""
    _take_any_character()
    try:
        code = work()
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return exits.READER_GONE
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except ConfigError as error:
        _say(error.message)
        return exits.USAGE
    except (DeepStrikeError, ImportError) as error:
        _say(str(error))
        return exits.FAILED
    return code


def _say(message: str) -> None:
    sys.stderr.write(f"error: {one_line(message, 2000)}\n")


def _take_any_character() -> None:
    """Write what the terminal's encoding does not know as an escape, instead of failing in mid-answer."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _forget_stdout() -> None:
    """Nobody reads: what is still buffered must not fail again when Python flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
