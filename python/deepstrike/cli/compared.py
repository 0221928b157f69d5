"""What `replay` and `sessions diff` do."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from deepstrike.cli import exits
from deepstrike.cli.place import fold, records_of, with_log
from deepstrike.cli.safe import json_line, one_line
from deepstrike.replay.comparison import Comparison, compare
from deepstrike.replay.proof import Replay, replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.cli.place import Log
    from deepstrike.replay.differences import Difference


def replay_session(path: str | None, session_id: str, *, as_json: bool) -> int:
    """Live through the session again; `DIFFERS` where something came out otherwise."""
    records = with_log(path, lambda log: records_of(log, session_id, path))
    report = replay(records)
    if report.equal:
        fold(session_id, records)
    _write(_as_json(report) if as_json else _replayed(report))
    return 0 if report.equal else exits.DIFFERS


def diff_sessions(path: str | None, left: str, right: str, *, as_json: bool) -> int:
    """Compare two sessions; `DIFFERS` where they part."""

    async def both(log: Log) -> tuple[list[bytes], list[bytes]]:
        return await records_of(log, left, path), await records_of(log, right, path)

    comparison = compare(*with_log(path, both))
    _write(_as_json(comparison) if as_json else _compared(comparison))
    return 0 if comparison.equal else exits.DIFFERS


def _replayed(report: Replay) -> Iterator[str]:
    for warning in report.warnings:
        yield f"note: {one_line(warning, 400)}"
    divergence = report.divergence
    if divergence is None:
        yield (
            f"the same: {report.proved} of {report.records} records came out as recorded, "
            f"{report.turns} turns, {report.prompts} prompts with the recorded digest"
        )
        return
    yield f"differs at record {divergence.seq}, behind {report.proved} records that are the same"
    yield f"recorded {divergence.recorded or 'nothing'}, came out {divergence.replayed or 'nothing'}"
    yield f"cause: {one_line(divergence.cause, 400)}"
    yield from map(_difference, divergence.differences)


def _compared(comparison: Comparison) -> Iterator[str]:
    parting = comparison.parting
    if parting is None:
        yield f"the same: {comparison.turns} turns"
    else:
        where = " and ".join(f"record {seq}" for seq in (parting.left, parting.right) if seq is not None)
        at = f", at {where}" if where else ""
        yield f"differs behind {parting.turn} turns that are the same{at} [{parting.kind}]"
        yield f"cause: {one_line(parting.cause, 400)}"
        yield from map(_difference, parting.differences)
    yield from (f"note: {one_line(note, 400)}" for note in comparison.notes)


def _difference(difference: Difference) -> str:
    left, right = (one_line(text, 300) or "(nothing)" for text in (difference.left, difference.right))
    return f"  {one_line(difference.path)}\n    - {left}\n    + {right}"


def _as_json(found: Replay | Comparison) -> list[str]:
    return [json_line({"equal": found.equal, **asdict(found)})]


def _write(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
