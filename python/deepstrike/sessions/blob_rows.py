"""The blobs in a SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepstrike.sessions.blob import blob_ref, blob_shelf, shelf_of
from deepstrike.sessions.refusals import damaged_blob

if TYPE_CHECKING:
    import sqlite3

_LONGEST: Final = (1 << 31) - 1
"""More than SQLite keeps in one value."""


def put(connection: sqlite3.Connection, session_id: str, data: bytes) -> str:
    """Keep `data`; the same bytes are kept once in a session."""
    ref = blob_ref(blob_shelf(session_id), data)
    connection.execute("INSERT INTO blobs VALUES (?, ?) ON CONFLICT (ref) DO NOTHING", (ref, data))
    return ref


def get(connection: sqlite3.Connection, ref: str, start: int, length: int | None) -> bytes | None:
    """Bytes of a blob, None where there is none. One that is read as a whole is checked against its reference."""
    whole = start == 0 and length is None
    if whole:
        found = connection.execute("SELECT data FROM blobs WHERE ref = ?", (ref,)).fetchall()
    else:
        span = (start + 1, _LONGEST if length is None else max(length, 0), ref)
        found = connection.execute("SELECT substr(data, ?, ?) FROM blobs WHERE ref = ?", span).fetchall()
    if not found:
        return None
    data: bytes | None = found[0][0]
    if whole and (type(data) is not bytes or blob_ref(shelf_of(ref), data) != ref):
        raise damaged_blob(ref)
    return data or b""  # no bytes at all come as NULL
