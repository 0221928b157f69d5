"""What `sessions list | show | export | verify | delete` do."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TextIO

import click
import msgspec

from deepstrike.cli import exits
from deepstrike.cli.hint import log_option
from deepstrike.cli.place import fold, records_of, unknown, with_log
from deepstrike.cli.safe import json_line, one_line, visible, visible_json
from deepstrike.cli.telling import ago, goal_text, session_lines
from deepstrike.clock import current_clock
from deepstrike.errors import ConfigError, CorruptLog, SessionError, UnknownSession
from deepstrike.host.requests import open_requests
from deepstrike.replay.retrace import read_records
from deepstrike.replay.story import story_of
from deepstrike.secrets.shapes import masked
from deepstrike.wire.event import Started

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deepstrike.cli.place import Log
    from deepstrike.sessions.listing import Unreadable
    from deepstrike.sessions.verify import LogReport

_STATUS_WIDTH = 11


@dataclass(frozen=True, slots=True)
class _Row:
    """One session of a list. `at` is when it was last written to; `trouble` says why it cannot be read, if so.

    `parent` is the session whose sub-agent it is, "" for none.
    """

    session: str
    records: int
    status: str
    at: int
    goal: str
    pending: int = 0
    trouble: str = ""
    parent: str = ""


def list_sessions(path: str | None, *, as_json: bool) -> int:
    """One line a session, in order of their first record, sub-agents below whose they are."""
    rows = with_log(path, _rows)
    now = current_clock().now_ms()
    if as_json:
        _write(json_line(asdict(row)) for row in rows)
        return 0
    width = max((len(_name(row)) for row in rows), default=0)
    _write(_listed(row, width, now) for row in rows)
    if not rows and sys.stdout.isatty():
        sys.stdout.write("no sessions yet: deepstrike run --session ID keeps one\n")
    return 0


def show_session(path: str | None, session_id: str, *, as_json: bool) -> int:
    """The session for people, or its story as one JSON object."""
    records = with_log(path, lambda log: records_of(log, session_id, path))
    kernel = fold(session_id, records)
    story = story_of(records)
    if as_json:
        _write([json_line(msgspec.json.decode(msgspec.json.encode(story)))])
    else:
        # The log does not hold where a tool was imported from.
        options = f"{log_option(path)} --tools MODULE:NAME".lstrip()
        _write(session_lines(story, open_requests(kernel.pending()), current_clock().now_ms(), options))
    return 0


def export_session(path: str | None, session_id: str, *, raw: bool, intact: bool = False) -> int:
    """The records as JSON lines, control characters escaped, secrets masked by their shape unless `raw`.

    `intact`: those before any damage, with a word on standard error about what is left out.
    """
    if intact:
        records, damage = with_log(path, lambda log: _intact(log, session_id, path))
    else:
        records, damage = with_log(path, lambda log: records_of(log, session_id, path)), None
    texts = (line.decode() for line in records)
    _write(visible_json(text if raw else masked(text)) for text in texts)
    if damage is not None:
        sys.stderr.write(f"left out what is not intact: {one_line(damage, 500)}\n")
    return 0


def verify_sessions(path: str | None, session_ids: Sequence[str], *, as_json: bool) -> int:
    """Look at every byte of these sessions, of all without ids; `DAMAGED` where one is not sound.

    Without ids a file whose session cannot be told is not sound either.
    """
    reports, unreadable = with_log(path, lambda log: _reports(log, session_ids, path))
    for report, trouble in reports:
        line = json_line({**asdict(report), "sound": not trouble, "trouble": trouble})
        _write([line if as_json else _told(report, trouble)])
    for file in unreadable:
        line = json_line({"session_id": None, "path": file.path, "sound": False, "trouble": file.reason})
        _write([line if as_json else f"✗ {visible(file.path)}: {one_line(file.reason, 500)}"])
    return exits.DAMAGED if unreadable or any(trouble for _, trouble in reports) else 0


def delete_sessions(path: str | None, session_ids: Sequence[str], *, yes: bool) -> int:
    """Remove sessions with their blobs, and those of their sub-agents; asks first unless `yes`."""
    stdin: TextIO | None = sys.stdin  # None where it is closed
    if not yes and (stdin is None or not stdin.isatty()):
        raise ConfigError("nobody can be asked here whether to delete: add --yes")
    with_log(path, lambda log: _all_there(log, session_ids, path))
    family = with_log(path, lambda log: _with_sub_agents(log, session_ids))
    named = ", ".join(one_line(session_id, 60) for session_id in family)
    if not yes and not click.confirm(f"Delete {named} with all records and blobs?", err=True):
        return exits.FAILED
    with_log(path, lambda log: _deleted(log, family))
    return 0


async def _all_there(log: Log, session_ids: Sequence[str], path: str | None) -> None:
    """Raises `UnknownSession` unless each is there; one whose head is damaged is, though no list can name it."""
    known = set(await log.sessions())
    for session_id in session_ids:
        if session_id not in known:
            try:
                await log.verify(session_id)
            except UnknownSession:
                raise unknown(session_id, path) from None


async def _with_sub_agents(log: Log, session_ids: Sequence[str]) -> list[str]:
    """The sessions, each before those of its sub-agents: a session that is live is refused before they are touched."""
    family = dict.fromkeys(session_ids)
    for name in await log.sessions():
        if any(name.startswith(f"{of}/") for of in session_ids) and await _is_sub_agent(log, name):
            family[name] = None
    return list(family)


async def _is_sub_agent(log: Log, session_id: str) -> bool:
    try:
        begun = [record.event for record in read_records((await log.intact(session_id))[:1]) if record is not None]
        return any(isinstance(event, Started) and event.config.agents.parent is not None for event in begun)
    except SessionError:  # nobody can say whose it is
        return False


async def _deleted(log: Log, session_ids: Sequence[str]) -> None:
    for session_id in session_ids:
        await log.delete(session_id)


async def _intact(log: Log, session_id: str, path: str | None) -> tuple[list[bytes], str | None]:
    """The records before the damage, and what is damaged."""
    await _all_there(log, [session_id], path)
    return await log.intact(session_id), (await log.verify(session_id)).damage


async def _rows(log: Log) -> list[_Row]:
    rows = [await _row(log, session_id) for session_id in await log.sessions()]
    there: set[str] = set()
    below: dict[str | None, list[_Row]] = {}
    for row in rows:  # whose sub-agent one is has begun before it: so nothing is below itself, whatever records say
        below.setdefault(row.parent if row.parent and row.parent in there else None, []).append(row)
        there.add(row.session)
    return list(_nested(below, None))


def _nested(below: Mapping[str | None, Sequence[_Row]], parent: str | None) -> Iterator[_Row]:
    for row in below.get(parent, ()):
        yield row
        yield from _nested(below, row.session)


async def _row(log: Log, session_id: str) -> _Row:
    try:
        records = await log.read(session_id)
        kernel = fold(session_id, records)
        ends = read_records([records[0]])[0], read_records([records[-1]])[0]
    except SessionError as error:
        status = "damaged" if isinstance(error, CorruptLog) else "unreadable"
        return _Row(session_id, 0, status, 0, "", trouble=error.message)
    outcome = kernel.outcome()
    first, last = ends
    goal = story_of(records[:1]).goals[0] if first is not None and isinstance(first.event, Started) else None
    return _Row(
        session_id,
        records=len(records),
        status="not ended" if outcome is None else outcome.status,
        at=0 if last is None else last.at,
        goal="" if goal is None else goal_text(goal),
        pending=len(open_requests(kernel.pending())),
        parent="" if goal is None or (of := goal.started.config.agents.parent) is None else of.session,
    )


def _name(row: _Row) -> str:
    return one_line(f"↳ {row.session}" if row.parent else row.session, 40)


def _listed(row: _Row, width: int, now: int) -> str:
    when = ago(row.at, now) if row.at else ""
    about = one_line(row.trouble or row.goal, 80)
    waits = f" ({row.pending} pending)" if row.pending else ""
    return f"{_name(row):<{width}}  {row.status:<{_STATUS_WIDTH}}{waits}  {when:>10}  {row.records:>5} records  {about}"


async def _reports(
    log: Log, session_ids: Sequence[str], path: str | None
) -> tuple[list[tuple[LogReport, str]], list[Unreadable]]:
    if session_ids:
        await _all_there(log, session_ids, path)
        return [await _report(log, session_id) for session_id in session_ids], []
    return [await _report(log, session_id) for session_id in await log.sessions()], await log.unreadable()


async def _report(log: Log, session_id: str) -> tuple[LogReport, str]:
    """The report on a session, and what is wrong with it in words."""
    report = await log.verify(session_id)
    if report.damage is not None:
        return report, report.damage
    if report.missing or report.damaged_blobs:
        return report, f"blobs missing: {len(report.missing)}, damaged: {len(report.damaged_blobs)}"
    try:
        fold(session_id, await log.read(session_id))
    except SessionError as error:
        return report, error.message
    return report, ""


def _told(report: LogReport, trouble: str) -> str:
    line = f"{'✗' if trouble else '✓'} {one_line(report.session_id, 60)}: {report.records} records, {report.size} bytes"
    if report.torn:
        line += f"; {report.torn} bytes of an unfinished append behind them, which the next run sets aside"
    if report.aside:
        line += f"; set aside before: {', '.join(visible(name) for name in report.aside)}"
    return f"{line}; {one_line(trouble, 500)}" if trouble else line


def _write(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
