"""What stands on the disk, byte by byte: files of this layout must stay readable for ever."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from stores import write

from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.frame import seed
from deepstrike.sessions.layout import Stretch, head_line, head_of, pack_batch, read_stretch
from deepstrike.sessions.sqlite import SqliteSessionLog

FIRST = (
    b'deepstrike log 1 00000000 "sums \\u00fc" 03c0dd34\n'
    b'\t\x00\x00\x00[\xc4*c\x00\x00\x00\x00\x1d\xa4\xfc\xfd{"seq":0}'
    b'\t\x00\x00\x00x\xcaK[\x01\x00\x00\x00\xdd\x18{z{"seq":1}'
    b'\t\x00\x00\x00\x05;\\\xe6\x00\x00\x00\x00(\xc9d\x80{"seq":2}'
)
NAME = "sums-f6b3863a12cc05afc281379edb9426ec.log"
LAYOUT = [
    "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL, seal INTEGER, sealed INTEGER)",
    "CREATE UNIQUE INDEX sessions_by_id ON sessions (id)",
    "CREATE TABLE records (place INTEGER PRIMARY KEY, seal INTEGER, record BLOB)",
    "CREATE TABLE blobs (ref TEXT PRIMARY KEY, data BLOB NOT NULL)",
]
ROWS = [
    (4294967296, 1745280010, b'{"seq":0}'),
    (4294967297, 5381971751, b'{"seq":1}'),
    (4294967298, 2198285063, b'{"seq":2}'),
]
SESSIONS = [(1, b"sums", 329994169, 15083186951)]
BATCHES = st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=4), min_size=1, max_size=5)


async def test_given_the_first_layout_of_files_when_written_and_read_then_the_bytes_are_those_of_its_day(
    tmp_path: Path,
) -> None:
    log = FileSessionLog(tmp_path)
    await write(log, "sums ü", [b'{"seq":0}'], [b'{"seq":1}', b'{"seq":2}'])
    (path,) = tmp_path.glob("*.log")
    assert (path.name, path.read_bytes()) == (NAME, FIRST)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / NAME).write_bytes(FIRST)
    kept = FileSessionLog(tmp_path / "kept")
    assert await kept.read("sums ü") == [b'{"seq":0}', b'{"seq":1}', b'{"seq":2}']
    assert await kept.sessions() == ["sums ü"]


async def test_given_the_first_layout_of_databases_when_written_then_its_tables_and_rows_are_those_of_its_day(
    tmp_path: Path,
) -> None:
    await write(SqliteSessionLog(tmp_path / "s.db"), "sums", [b'{"seq":0}'], [b'{"seq":1}', b'{"seq":2}'])
    with sqlite3.connect(tmp_path / "s.db") as connection:
        tables = connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite%'")
        layout = [sql for (sql,) in tables]
        rows = connection.execute("SELECT * FROM records").fetchall()
        sessions = connection.execute("SELECT * FROM sessions").fetchall()
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    connection.close()
    assert (layout, rows, sessions, marks) == (LAYOUT, ROWS, SESSIONS, [0x6473746B, 1])


@given(st.text(max_size=60), st.integers(0, 2**32 - 1))
def test_given_any_id_when_its_head_is_read_then_it_comes_back_whatever_follows(session_id: str, order: int) -> None:
    line = head_line(session_id, order)
    head = head_of(line + b'\x00\n"more')
    assert head is not None
    assert (head.session_id, head.order, len(line)) == (session_id, order, len(head_line(session_id, 0)))
    assert line.count(b"\n") == 1


@given(BATCHES, st.integers(0, 10_000))
def test_given_whole_batches_when_read_then_their_records_come_back(batches: list[list[bytes]], base: int) -> None:
    data, ends, chain = b"", list[int](), seed("s")
    for batch in batches:
        packed, where, chain = pack_batch(batch, chain, base + len(data))
        data += packed
        ends += where
    records = [record for batch in batches for record in batch]
    found = read_stretch(data, seed("s"), base)
    assert found == Stretch(records, found.ends, chain, 0, None)
    assert list(found.ends) == ends
