"""The command that answers a session which waits, word for word as it must be given."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from deepstrike.cli.choice import shown_address
from deepstrike.cli.given import MAX_TURNS
from deepstrike.cli.safe import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.cli.given import Setup

_LONGEST = 4000


def options_of(setup: Setup) -> str:
    """The options that make a run like this one, quoted for a shell; without credentials that an address may hold."""
    return " ".join(shlex.quote(one_line(word, _LONGEST)) for word in _words(setup))


def log_option(path: str | None) -> str:
    """The option that names this log, "" for the default one."""
    return "" if path is None else f"--log {shlex.quote(one_line(path, _LONGEST))}"


def answer_line(session_id: str | None, options: str | None) -> str:
    """How to answer; `options` go behind, None says that the session is not kept."""
    if options is None:
        return "this session was not kept, so nobody can answer it: run the goal with --session ID, then resume that"
    name = shlex.quote(one_line(session_id or "SESSION", _LONGEST))
    return f"answer with: deepstrike resume {name} --answer ID=VALUE {options}".rstrip()


def _words(setup: Setup) -> Iterator[str]:
    if setup.log_path is not None:
        yield from ("--log", setup.log_path)
    for name in setup.tools:
        yield from ("--tools", name)
    if setup.skills is not None:
        yield from ("--skills", setup.skills)
    if setup.model is not None:
        yield from ("--model", setup.model)
    if setup.base_url is not None:
        yield from ("--base-url", shown_address(setup.base_url))
    if setup.system:
        yield from ("--system", setup.system)
    if setup.max_turns != MAX_TURNS:
        yield from ("--max-turns", str(setup.max_turns))
    if setup.timeout is not None:
        yield from ("--timeout", str(setup.timeout))
