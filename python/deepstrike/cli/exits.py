"""Exit codes, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.stream import Status

FAILED = 1
USAGE = 2
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
  129  ended by SIGHUP
  130  user_abort: interrupted with Ctrl-C
  141  the reader of the output went away
  143  ended by SIGTERM
"""
