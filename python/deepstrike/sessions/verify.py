"""What a look at a whole session says about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deepstrike.errors import CorruptLog, SessionError
from deepstrike.sessions.blob import blob_shelf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from deepstrike.sessions.base import SessionLog


@dataclass(frozen=True, slots=True)
class LogReport:
    """How a session stands in its log.

    `records` counts the intact records before any damage and `size` their bytes. `torn` counts the bytes behind them
    that an unfinished append has left: the next owner cuts them off. `aside` names the files in which such tails were
    kept. `damage` says what is damaged and where, None where nothing is. `missing` and `damaged_blobs` are references
    that a record names and whose bytes are gone or changed.
    """

    session_id: str
    records: int
    size: int
    torn: int = 0
    aside: tuple[str, ...] = ()
    damage: str | None = None
    missing: tuple[str, ...] = ()
    damaged_blobs: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether all that was acknowledged is there. A torn tail never was."""
        return self.damage is None and not self.missing and not self.damaged_blobs


async def report_on(
    log: SessionLog,
    session_id: str,
    records: Sequence[bytes],
    *,
    torn: int = 0,
    aside: Iterable[Path] = (),
    damage: str | None = None,
) -> LogReport:
    """The report on a session of which this was read; looks at every blob that the records name."""
    stand = {ref: await _stand(log, ref) for ref in _refs_in(session_id, records)}
    return LogReport(
        session_id,
        records=len(records),
        size=sum(map(len, records)),
        torn=torn,
        aside=tuple(map(str, aside)),
        damage=damage,
        missing=tuple(ref for ref, how in stand.items() if how == "missing"),
        damaged_blobs=tuple(ref for ref, how in stand.items() if how == "damaged"),
    )


async def _stand(log: SessionLog, ref: str) -> Literal["sound", "missing", "damaged"]:
    try:
        await log.get_blob(ref)
    except CorruptLog:
        return "damaged"
    except SessionError as error:
        if error.code != "unknown_blob":
            raise
        return "missing"
    return "sound"


def _refs_in(session_id: str, records: Sequence[bytes]) -> list[str]:
    """The references of this session's blobs in its records, each once."""
    shape = re.compile(rb"%b-[0-9a-f]{32}" % blob_shelf(session_id).encode())
    return [ref.decode() for ref in dict.fromkeys(ref for record in records for ref in shape.findall(record))]
