"""What `policy check` and `policy test` do."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from deepstrike.cli.place import with_log
from deepstrike.cli.safe import json_line, one_line
from deepstrike.errors import ConfigError, SessionError
from deepstrike.governance.backtest import backtest
from deepstrike.governance.policy import Governance, summary
from deepstrike.kernel import Corrupt, Newer
from deepstrike.sessions.places import default_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deepstrike.cli.place import Log
    from deepstrike.governance.backtest import Backtest, Change, ChangeKind

CHANGES = 1

_WORDS: dict[ChangeKind, str] = {
    "newly_blocked": "newly blocked",
    "newly_allowed": "newly allowed",
    "newly_asked": "newly asked about",
}
_WAS = {"allow": "allowed", "deny": "denied", "ask": "asked about", "rate_limited": "over a rate limit"}


def check_policy(path: str, *, as_json: bool) -> int:
    """Read a policy and say what is in it. Raises `ConfigError` that names the line."""
    policy = Governance.from_file(path).policy()
    if as_json:
        _write([json_line(msgspec.json.decode(msgspec.json.encode(policy)))])
        return 0
    _write([f"{one_line(path)}: {summary(policy)}"])
    return 0


def backtest_policy(path: str, log_path: str | None, *, as_json: bool) -> int:
    """Judge the recorded calls by the policy at `path`; `CHANGES` where one is decided in another way."""
    governance = Governance.from_file(path)
    place = default_path() if log_path is None else Path(log_path).expanduser()
    if not place.exists():
        raise ConfigError(f"there are no sessions at {str(place)!r}: --sessions names a folder or a SQLite file")
    try:
        recorded = with_log(log_path, _all_records)
        found = backtest(governance, recorded)
    except (SessionError, OSError, msgspec.MsgspecError, Corrupt, Newer) as error:
        raise ConfigError(f"the sessions at {str(place)!r} cannot be read: {error}") from error
    if not recorded:
        raise ConfigError(f"there are no sessions at {str(place)!r}, so nothing was tested: is it the right place?")
    _write([json_line(asdict(found))] if as_json else _told(found))
    return CHANGES if found.changes else 0


async def _all_records(log: Log) -> dict[str, list[bytes]]:
    return {session: await log.read(session) for session in await log.sessions()}


def _told(found: Backtest) -> Iterator[str]:
    yield f"{found.calls} recorded calls in {found.sessions} sessions"
    for change in found.changes:
        yield from _change(change)
    if not found.changes:
        yield "nothing changes"
    for rule in found.dead:
        yield f"dead rule, it fits none of them: {one_line(rule)}"
    for rule in found.overruled:
        yield f"overruled rule, a stronger one fits all that it fits: {one_line(rule)}"


def _change(change: Change) -> Iterator[str]:
    verdict, call = change.verdict, change.example
    by = f" by {verdict.stage}, {one_line(verdict.rule)}: {one_line(verdict.reason)}" if verdict.rule else ""
    yield f"{_WORDS[change.kind]}: {change.count}{by}"
    yield (
        f"  for example {one_line(call.tool)} {one_line(call.arguments)} "
        f"(session {one_line(call.session_id)}, record {call.seq}, then {_WAS[call.was]})"
    )


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
