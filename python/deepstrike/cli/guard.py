"""How a command ends when something goes wrong: one clear line and the right exit code."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import click

from deepstrike.cli import exits
from deepstrike.cli.safe import one_line
from deepstrike.errors import ConfigError, DeepStrikeError

if TYPE_CHECKING:
    from collections.abc import Callable


_NO_ENCODING = ("ascii", "ANSI_X3.4-1968", "US-ASCII")


def guarded(work: Callable[[], int]) -> int:
    """The exit code of `work`; our errors, a missing module, Ctrl-C and failing streams give codes, no traceback."""
    try:
        code = work()
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return exits.READER_GONE
    except OSError as error:
        _forget_stdout()
        what = "" if error.filename is None else f" {error.filename!r}"
        _say(f"reading or writing{what} failed: {error.strerror or error}")
        return exits.FAILED
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except ConfigError as error:
        _say(error.message)
        return exits.USAGE
    except DeepStrikeError as error:
        _say(error.message)
        return exits.of_error(error)
    except ImportError as error:
        _say(str(error))
        return exits.FAILED
    return code


def end(work: Callable[[], int]) -> None:
    """Do the work of a command and end with its exit code; failures end in one clear line."""
    click.get_current_context().exit(guarded(work))


def have_streams() -> bool:
    """Make the standard streams fit to use; False, with a word about it, if there is no output to write to.

    What the terminal's encoding does not know is written as an escape, instead of failing in mid-answer.
    """
    streams: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr, sys.stdin)  # None where one is closed
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
            if stream is sys.stdin and stream.encoding in _NO_ENCODING:
                stream.reconfigure(encoding="utf-8")  # more than ASCII comes in UTF-8, as on the command line
    if streams[1] is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (for the rest of the process)
    if streams[0] is None:
        _say("standard output is closed: leave it open, or send it to a file or to /dev/null")
    return streams[0] is not None


def _say(message: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"error: {one_line(message, 2000)}\n")


def _forget_stdout() -> None:
    """What is still buffered must not fail again when Python flushes it at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
