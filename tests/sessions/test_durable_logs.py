"""Both durable logs keep every promise of a session log, over objects, and say what they refuse."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest
from stores import FULL, KINDS, SQLITE, Durable, Kind, seeded, write

from deepstrike.errors import ConfigError, SessionError, UnknownSession
from deepstrike.sessions.base import SessionLog
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog
from deepstrike.testing.log_conformance import DURABLE_CHECKS, LOG_CHECKS, DurableCheck, LogCheck, check_durable_log

SOURCES = Path(__file__).parents[2] / "python"


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    found = request.param
    assert isinstance(found, Kind)
    return found


@pytest.mark.parametrize("check", LOG_CHECKS, ids=str)
async def test_a_durable_log_conforms(check: LogCheck, kind: Kind, tmp_path: Path) -> None:
    async def make() -> SessionLog:
        return kind.at(tmp_path)()

    await check.run(make)


@pytest.mark.parametrize("check", DURABLE_CHECKS, ids=str)
async def test_two_logs_on_one_store_conform(check: DurableCheck, kind: Kind, tmp_path: Path) -> None:
    await check.run(kind.stores_in(tmp_path))


async def test_the_whole_durable_suite_passes_in_one_call(tmp_path: Path) -> None:
    await check_durable_log(SQLITE.stores_in(tmp_path))


async def test_the_suite_names_what_a_log_does_not_keep(tmp_path: Path) -> None:
    class Forgetful(FileSessionLog):
        async def sessions(self) -> list[str]:
            return []

    numbers = count()

    async def make() -> Callable[[], SessionLog]:
        folder = tmp_path / str(next(numbers))
        return lambda: Forgetful(folder)

    with pytest.raises(AssertionError, match="the_order_of_sessions_is_that_of_the_store"):
        await check_durable_log(make)


async def test_ids_and_blobs_of_any_text_survive_the_object(kind: Kind, tmp_path: Path) -> None:
    open_log = kind.at(tmp_path)
    ids = ["", "\ud800", "nul", "NUL", "é", "e\u0301", "a/../b", "\0", "x" * 5_000]
    first = open_log()
    for session_id in ids:
        await write(first, session_id, [session_id.encode("utf-8", "surrogatepass")])
    again = open_log()
    assert await again.sessions() == ids
    assert [await again.read(session_id) for session_id in ids] == [
        [session_id.encode("utf-8", "surrogatepass")] for session_id in ids
    ]


async def test_given_nothing_written_when_asked_then_nothing_is_made(kind: Kind, tmp_path: Path) -> None:
    log = kind.open(tmp_path / "below" / "here.db")
    assert (await log.sessions(), await log.read("s"), await log.latest_seq("s")) == ([], [], -1)
    for attempt in (log.delete("s"), log.verify("s")):
        with pytest.raises(UnknownSession):
            await attempt
    assert list(tmp_path.iterdir()) == []


async def test_all_that_is_made_is_its_users_alone(kind: Kind, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        log = kind.open(tmp_path / "new" / "log.db")
        owner = await log.acquire("s")
        await log.append("s", [b"a"], 0, owner=owner)
        await log.put_blob("s", b"data")
        made = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
        made[tmp_path / "new"] = stat.S_IMODE((tmp_path / "new").stat().st_mode)
        await log.release("s", owner)
    finally:
        os.umask(before)
    assert {path: mode for path, mode in made.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
    assert len(made) >= 4


async def test_a_deleted_session_leaves_no_bytes(kind: Kind, tmp_path: Path) -> None:
    log = kind.at(tmp_path)()
    for turn in range(40):
        for name in ("keep", "gone", "other"):
            await write(log, name, [b"%s-%d " % (name.encode(), turn) * (1 + turn * 7 % 90)])
    await log.put_blob("gone", b"gone-blob " * 3000)
    await log.delete("gone")
    left = {path.name for path in tmp_path.rglob("*") if path.is_file() and b"gone-" in path.read_bytes()}
    assert left == set()
    assert (len(await log.read("keep")), len(await log.read("other"))) == (40, 40)


async def test_given_sessions_that_grow_in_turns_when_some_are_deleted_then_no_bytes_of_them_are_left(
    kind: Kind, tmp_path: Path
) -> None:
    seed, dice = seeded()
    left = []
    for number in range(24 if FULL else 5):
        place = tmp_path / f"store-{number}"
        log = kind.at(place)()
        names = [f"name-{name}" for name in range(6)]
        for _ in range(dice.randrange(50, 200)):
            name, size = dice.choice(names), dice.choice([20, 100, 300, 1500, 5000, 20000])
            await write(log, name, [f"{name}. ".encode() * (size // 20) for _ in range(dice.choice([1, 1, 3]))])
        there = await log.sessions()
        kept = {name: await log.read(name) for name in there}
        for name in dice.sample(there, 3):
            await log.delete(name)
            del kept[name]
            files = [path for path in place.rglob("*") if path.is_file()]
            left += [(number, path.name) for path in files if name.encode() in path.read_bytes()]
        assert {name: await log.read(name) for name in await log.sessions()} == kept
    assert left == [], seed


async def test_given_a_relative_path_when_the_working_directory_changes_then_the_log_stays(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = kind.open(Path("my logs ü.db"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    await write(log, "s", [b"a"])
    assert await kind.open(tmp_path / "my logs ü.db").read("s") == [b"a"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_given_another_durability_when_asked_for_then_the_same_sessions_are_flushed(
    kind: Kind, tmp_path: Path
) -> None:
    log = kind.at(tmp_path)()
    await write(log, "s", [b'{"seq":0}', b'{"seq":1}'])
    flushed = log.with_durability("disk")

    assert type(flushed) is type(log)
    assert await flushed.read("s") == await log.read("s")
    owner = await flushed.acquire("s")
    assert await flushed.append("s", [b'{"seq":2}'], 2, owner=owner) == 2
    await flushed.release("s", owner)
    assert await log.latest_seq("s") == 2


def test_wrong_arguments_are_refused_when_the_log_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    attempts: list[Callable[[], Durable]] = [
        lambda: FileSessionLog(tmp_path / "file"),
        lambda: SqliteSessionLog(tmp_path),
        lambda: SqliteSessionLog(":memory:"),
        lambda: SqliteSessionLog(""),
        lambda: FileSessionLog(tmp_path, durability="tape"),  # type: ignore[arg-type]
        lambda: SqliteSessionLog(tmp_path / "a.db", durability="tape"),  # type: ignore[arg-type]
    ]
    told: list[str] = []
    for attempt in attempts:
        with pytest.raises(ConfigError) as caught:
            attempt()
        told.append(caught.value.message.split("; ")[0].split(": ")[-1])
    assert told == [
        "name a folder, or use SqliteSessionLog for one file",
        "name a file in it, or use FileSessionLog",
        "give one, or use InMemorySessionLog",
        "give one, or use InMemorySessionLog",
        'it is "os" or "disk"',
        'it is "os" or "disk"',
    ]


async def refusal(attempt: Awaitable[object]) -> str:
    with pytest.raises(SessionError) as caught:
        await attempt
    return caught.value.code


async def test_a_layout_of_a_later_release_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    files = FileSessionLog(tmp_path / "files")
    await write(files, "s", [b"a"])
    (path,) = (tmp_path / "files").glob("*.log")
    path.write_bytes(path.read_bytes().replace(b"deepstrike log 1 ", b"deepstrike log 27 ") + b"in a way unknown today")
    rows = tmp_path / "rows.db"
    await write(SqliteSessionLog(rows), "s", [b"a"])
    gc.collect()  # the log that wrote it may still be open, and puts its file in order when it is collected
    with sqlite3.connect(rows) as connection:
        connection.execute("PRAGMA user_version = 27")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    kept = path.read_bytes(), rows.read_bytes()
    codes = [
        await refusal(attempt)
        for log in (files, SqliteSessionLog(rows))
        for attempt in (log.acquire("s"), log.read("s"), log.latest_seq("s"), log.verify("s"))
    ]
    assert codes == ["newer_format"] * 8
    assert (path.read_bytes(), rows.read_bytes()) == kept


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (address TEXT)")
    connection.close()
    kept = path.read_bytes()
    with pytest.raises(SessionError, match=r"bookmarks\.db is a SQLite database, but not one of session logs; nothing"):
        await SqliteSessionLog(path).acquire("s")
    assert path.read_bytes() == kept


IN_ANY_LOCALE = """
import asyncio, sys
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

async def main():
    for log in (FileSessionLog(sys.argv[1] + "/files"), SqliteSessionLog(sys.argv[1] + "/rows.db")):
        name = "na\\u00efve \\u2705 \\u4f60\\u597d"
        owner = await log.acquire(name)
        await log.append(name, [name.encode()], 0, owner=owner)
        ref = await log.put_blob(name, name.encode())
        await log.release(name, owner)
        assert await log.sessions() == [name] and await log.read(name) == [name.encode()]
        assert await log.get_blob(ref) == name.encode() and (await log.verify(name)).sound

asyncio.run(main())
"""


def test_given_a_locale_that_is_not_utf8_when_a_session_is_kept_then_it_is_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "ü 你好"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-c", IN_ANY_LOCALE, folder],
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


async def test_given_another_program_that_writes_when_a_batch_is_appended_then_the_loop_goes_on_meanwhile(
    tmp_path: Path,
) -> None:
    log = SqliteSessionLog(tmp_path / "s.db")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    append = asyncio.create_task(log.append("s", [b"b"], 1, owner=owner))
    passed = 0
    while passed < 50:
        await asyncio.sleep(0)
        passed += 1
    assert not append.done()
    other.execute("COMMIT")
    other.close()
    assert await append == 1


async def test_given_another_program_that_keeps_the_file_when_a_batch_is_appended_then_a_typed_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepstrike.sessions.database.BUSY_MS", 50)
    log = SqliteSessionLog(tmp_path / "s.db")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SessionError) as caught:
        await log.append("s", [b"b"], 1, owner=owner)
    other.execute("COMMIT")
    other.close()
    if sys.version_info >= (3, 11):
        assert (caught.value.code, caught.value.retryable) == ("log_busy", True)
    assert await log.append("s", [b"b"], 1, owner=owner) == 1


async def test_given_much_written_when_it_goes_on_then_the_write_ahead_log_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    log = SqliteSessionLog(path)
    owner = await log.acquire("s")
    for seq in range(300):
        await log.append("s", [b"x" * 100_000], seq, owner=owner)
    await log.release("s", owner)
    assert path.with_name("s.db-wal").stat().st_size < 16_000_000
    assert len(await log.read("s")) == 300
