"""The rows of a session in a SQLite file: what is asked of them, and whether they fit.

`records` holds the records of all sessions: `place` is the session's number and the seq, so a session's records stand
together and need no index, and a batch is one statement. `sessions.sealed` is the end as the last owner left it: how
many records there were, and the checksum of the last. Damage that loses the last records of a session at rest would
look like a shorter one without it. It is not moved with every append, which would cost half as much again.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from deepstrike.errors import CorruptLog
from deepstrike.sessions.frame import Damage, seal_batch, seed, verify
from deepstrike.sessions.refusals import damaged, moved_on
from deepstrike.write_ahead import transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.sessions.mark import Mark

    Row = tuple[int, int, bytes]

_MASK: Final = 0xFFFF_FFFF
_ROWS_AT_ONCE: Final = 64
_INTO: Final = "INSERT INTO records VALUES "
_APPEND: Final = tuple(_INTO + ", ".join(["(?, ?, ?)"] * rows) for rows in range(_ROWS_AT_ONCE + 1))
_LOST: Final = "it is lost"


class Tail(NamedTuple):
    """Where a session ends: its number, the seq that its next record gets, and the checksum of the last."""

    number: int
    next_seq: int
    chain: int


@dataclass(frozen=True, slots=True)
class Found:
    """Intact records, and what is wrong with the one behind them; its `index` is a seq."""

    records: list[bytes]
    damage: Damage | None


def id_bytes(session_id: str) -> bytes:
    """The id as it is stored."""
    return session_id.encode("utf-8", "surrogatepass")


def find(connection: sqlite3.Connection, session_id: str) -> tuple[int, int] | None:
    """The session's number and `sealed`; None where there is no such session."""
    wanted = (id_bytes(session_id),)
    found = connection.execute("SELECT number, sealed FROM sessions WHERE id = ?", wanted).fetchall()
    if not found:  # in a damaged file the index may miss what is there
        found = connection.execute("SELECT number, sealed FROM sessions NOT INDEXED WHERE id = ?", wanted).fetchall()
    if found and not (_fits(found[0][0], 31) and _fits(found[0][1], 63)):
        raise damaged(session_id, 0, "the list of sessions says of it what cannot be")
    return found[0] if found else None


def _fits(value: object, bits: int) -> bool:
    """Whether a value from a file that may be damaged is a number of so many bits."""
    return type(value) is int and 0 <= value < 1 << bits


def tail_of(connection: sqlite3.Connection, session_id: str, mark: Mark | None) -> Tail | None:
    """The session's end, None where there is no such session. Raises `CorruptLog` where it does not fit."""
    with transaction(connection, "DEFERRED"):
        entry = find(connection, session_id)
        if entry is None:
            if mark is not None and mark.binds:
                raise damaged(session_id, 0, mark.told)
            return None
        number, sealed = entry
        span = (number << 32, number << 32 | _MASK)
        last = f"{_SELECT} ORDER BY place DESC LIMIT 1"
        rows: list[Row] = connection.execute(last, span).fetchall()
        at_seal = (span[0] | max((sealed >> 32) - 1, 0),) * 2
        rows += connection.execute(_SELECT, at_seal).fetchall()
    if len(rows) != 2 or not all(_fits(seal, 63) for _, seal, _ in rows):
        raise damaged(session_id, max((sealed >> 32) - 1, 0), _LOST)
    tail = Tail(number, (rows[0][0] & _MASK) + 1, rows[0][1] & _MASK)
    if sealed >> 32 and rows[1][1] & _MASK != sealed & _MASK:
        raise damaged(session_id, (sealed >> 32) - 1, "it is not the one that the session was left with")
    if mark is not None and mark.binds:
        if tail.next_seq < mark.next_seq:
            raise damaged(session_id, tail.next_seq, mark.told)
        if tail.next_seq == mark.next_seq and tail.chain != mark.chain:
            raise damaged(session_id, tail.next_seq - 1, mark.told_other)
    return tail


def begin(connection: sqlite3.Connection, session_id: str, records: Sequence[bytes]) -> Tail:
    """Append the first batch of a session. Raises `StaleWriter` where somebody else was first."""
    stored = id_bytes(session_id)
    try:
        with transaction(connection):
            made = "INSERT INTO sessions (id, seal, sealed) VALUES (?, ?, 0)"
            number = connection.execute(made, (stored, crc32(stored))).lastrowid or 0
            return _insert(connection, Tail(number, 0, seed(session_id)), records)
    except sqlite3.IntegrityError as error:
        raise moved_on(session_id) from error


def append(connection: sqlite3.Connection, session_id: str, tail: Tail, records: Sequence[bytes]) -> Tail:
    """Append a batch behind `tail`; the new tail. Raises `StaleWriter` where a record stands there already."""
    try:
        if len(records) <= _ROWS_AT_ONCE:
            return _insert(connection, tail, records)
        with transaction(connection):
            return _insert(connection, tail, records)
    except sqlite3.IntegrityError as error:
        raise moved_on(session_id) from error


def _insert(connection: sqlite3.Connection, tail: Tail, records: Sequence[bytes]) -> Tail:
    """For up to `_ROWS_AT_ONCE` records one statement, atomic in itself; for more, in the caller's transaction."""
    place = tail.number << 32 | tail.next_seq
    seals = seal_batch(records, tail.chain)
    if len(records) <= _ROWS_AT_ONCE:
        values: list[int | bytes] = []
        for seal, record in zip(seals, records, strict=True):
            values += (place, seal, record)
            place += 1
        connection.execute(_APPEND[len(records)], values)
    else:
        places = range(place, place + len(records))
        connection.executemany(_APPEND[1], zip(places, seals, records, strict=True))
    return Tail(tail.number, tail.next_seq + len(records), seals[-1] & _MASK)


def seal(connection: sqlite3.Connection, tail: Tail) -> None:
    """Note where the session ends, for whoever finds it at rest."""
    ended = (tail.next_seq << 32 | tail.chain, tail.number)
    connection.execute("UPDATE sessions SET sealed = ? WHERE number = ?", ended)


_SELECT: Final = "SELECT place, seal, record FROM records WHERE place BETWEEN ? AND ?"


def records_from(connection: sqlite3.Connection, session_id: str, from_seq: int, mark: Mark | None) -> Found | None:
    """The records from `from_seq` on; None where there is no such session. `mark` was read before."""
    before = min(max(from_seq - 1, 0), _MASK)
    with transaction(connection, "DEFERRED"):
        entry = find(connection, session_id)
        if entry is None:
            return None if mark is None or not mark.binds else Found([], Damage(0, mark.told))
        first = entry[0] << 32
        rows: list[Row] = connection.execute(_SELECT, (first | before, first | _MASK)).fetchall()
    found = _checked(rows, first | before, from_seq, seed(session_id), entry[1])
    if mark is None or not mark.binds or found.damage is not None:
        return found
    return _held_to(found, mark, from_seq, rows)


def _held_to(found: Found, mark: Mark, from_seq: int, rows: list[Row]) -> Found:
    """What was found, or the damage where it is less than, or other than, what the mark notes. `rows` are its rows."""
    behind = from_seq + len(found.records)
    if behind < mark.next_seq:
        return Found(found.records, Damage(behind, mark.told))
    last = mark.next_seq - 1 - from_seq
    if last >= 0 and rows[last][1] & _MASK != mark.chain:
        return Found(found.records[:last], Damage(mark.next_seq - 1, mark.told_other))
    return found


def _checked(rows: list[Row], place: int, from_seq: int, chain: int, sealed: int) -> Found:
    """The records of `rows`; the first should stand at `place` and be the one before `from_seq`, unless that is 0."""
    misplaced = _misplaced(rows, place)
    del rows[len(rows) if misplaced is None else misplaced.index :]
    if from_seq and rows:
        chain = rows.pop(0)[1] & _MASK
    seals, records = [row[1] for row in rows], [row[2] for row in rows]
    unfit = verify(records, seals, chain) or _parted(seals)
    if unfit is not None:
        return Found(records[: unfit.index], Damage(from_seq + unfit.index, unfit.reason))
    behind = from_seq + len(records)
    if misplaced is not None:
        return Found(records, Damage(behind, misplaced.reason))
    if behind < sealed >> 32 or not behind:
        return Found(records, Damage(behind, _LOST))
    last = (sealed >> 32) - 1 - from_seq
    if last >= 0 and seals[last] & _MASK != sealed & _MASK:
        reason = "it is not the one that the session was left with"
        return Found(records[:last], Damage(from_seq + last, reason))
    return Found(records, None)


def _misplaced(rows: list[Row], place: int) -> Damage | None:
    """The first row that does not stand where it must, or whose values are of another kind."""
    for index, (found, seal, record) in enumerate(rows):
        if found != place + index:
            return Damage(index, _LOST)
        if not _fits(seal, 63) or type(record) is not bytes:
            return Damage(index, "its row holds something else")
    return None


def _parted(seals: list[int]) -> Damage | None:
    """The first record whose batch does not go on as it says."""
    expected = -1
    for index, seal in enumerate(seals):
        left = seal >> 32
        if 0 <= expected != left:
            return Damage(index, f"it says that {left} records of its batch follow where {expected} do")
        expected = left - 1
    return None if expected < 0 else Damage(len(seals), _LOST)


def session_ids(connection: sqlite3.Connection) -> list[str]:
    """All ids, in order of their first append. Raises `CorruptLog` where one is lost or changed."""
    with transaction(connection, "DEFERRED"):
        rows = connection.execute("SELECT number, id, seal FROM sessions NOT INDEXED ORDER BY number").fetchall()
        [(indexed,)] = connection.execute("SELECT count(*) FROM sessions INDEXED BY sessions_by_id").fetchall()
    if indexed != len(rows) or any(type(stored) is not bytes or crc32(stored) != seal for _, stored, seal in rows):
        raise CorruptLog(
            "the list of sessions is damaged; sessions can still be read by their ids, "
            "restore a copy, or save what sqlite3's .recover finds"
        )
    return [stored.decode("utf-8", "surrogatepass") for _, stored, _ in rows]


def remove(connection: sqlite3.Connection, session_id: str, shelf: str) -> bool:
    """Remove a session's records and blobs; whether there were any."""
    with transaction(connection):
        blobs = connection.execute("DELETE FROM blobs WHERE ref >= ? AND ref < ?", (f"{shelf}-", f"{shelf}."))
        entry = find(connection, session_id)
        if entry is not None:
            span = (entry[0] << 32, entry[0] << 32 | _MASK)
            connection.execute("DELETE FROM records WHERE place BETWEEN ? AND ?", span)
            connection.execute("DELETE FROM sessions WHERE number = ?", entry[:1])
    return entry is not None or blobs.rowcount > 0
