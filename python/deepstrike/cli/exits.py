"""Exit codes, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import CorruptLog, DeepStrikeError, SessionBusy, SessionError, UnknownSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.stream import Status

FAILED = 1
USAGE = 2
DIFFERS = 7
DAMAGED = 8
UNKNOWN = 9
NEWER = 10
BUSY = 11
INTERRUPTED = 130
READER_GONE = 141

BY_STATUS: Mapping[Status, int] = {
    "completed": 0,
    "error": FAILED,
    "max_turns": 3,
    "token_budget": 4,
    "timeout": 5,
    "suspended": 6,
    "user_abort": INTERRUPTED,
}

AT_ONCE = (BY_STATUS["user_abort"], BY_STATUS["timeout"])
"""The command leaves with these although a tool of the run may still be busy in a thread."""

HELP = """\b
Exit codes:
    0  completed
    1  the run failed, or something that is needed is broken
    2  wrong usage or configuration
    3  max_turns: the run took as many turns as it may
    4  token_budget: a budget was used up
    5  timeout
    6  suspended: the run waits for an answer
    7  two sessions differ, or a replay came out otherwise
    8  the session's log is damaged
    9  there is no such session
   10  the session was written by a newer version
   11  a run is live on the session
  129  ended by SIGHUP
  130  user_abort: interrupted with Ctrl-C
  141  the reader of the output went away
  143  ended by SIGTERM
"""


def of_error(error: DeepStrikeError) -> int:
    """The exit code of an error that ends a command."""
    for kind, code in _BY_ERROR:
        if isinstance(error, kind):
            return code
    return NEWER if isinstance(error, SessionError) and error.code == "newer_format" else FAILED


_BY_ERROR = ((CorruptLog, DAMAGED), (UnknownSession, UNKNOWN), (SessionBusy, BUSY))
