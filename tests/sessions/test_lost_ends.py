"""Acknowledged records that are lost at the end of a log, whole as it looks without them, are missed and named."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from stores import FULL, KINDS, SQLITE, Durable, Kind, seeded, write

from deepstrike.errors import CorruptLog, SessionBusy, SessionError
from deepstrike.sessions import mark as marks
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.listing import Unreadable
from deepstrike.sessions.lock import SessionLock, locked
from deepstrike.sessions.names import file_stem
from deepstrike.sessions.sqlite import SqliteSessionLog

SOURCES = Path(__file__).parents[2] / "python"

KILLED = """
import asyncio, os, signal, sys
from deepstrike.sessions.sqlite import SqliteSessionLog

async def main():
    log = SqliteSessionLog(sys.argv[1], durability=sys.argv[2])
    for name in ("at rest", "live"):
        owner = await log.acquire(name)
        for seq in range(0, 40, 2):
            await log.append(name, [b"%d" % seq * 40, b"%d" % seq], seq, owner=owner)
        if name == "at rest":
            await log.release(name, owner)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
NAMES = ("at rest", "live")


def killed(folder: Path, durability: str = "os") -> Path:
    """A database whose process was killed: what it has written stands in the write-ahead log."""
    folder.mkdir()
    path = folder / "s.db"
    command = [sys.executable, "-c", KILLED, str(path), durability]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCES)}, check=False)
    return path


async def found_in(log: Durable, session_id: str) -> list[bytes] | None:
    """The records, None where they are refused."""
    try:
        return await log.read(session_id)
    except CorruptLog:
        return None


async def test_given_any_byte_of_a_killed_writers_log_flipped_when_read_then_no_record_is_silently_missing(
    tmp_path: Path,
) -> None:
    seed, dice = seeded()
    path = killed(tmp_path / "killed")
    whole = {name: await SqliteSessionLog(copy_of(path, tmp_path / "whole")).read(name) for name in NAMES}
    assert {name: len(records) for name, records in whole.items()} == {"at rest": 40, "live": 40}
    size = path.with_name("s.db-wal").stat().st_size
    refused = 0
    silent: list[int] = []
    for at in range(size) if FULL else sorted(dice.sample(range(size), 150)):
        again = copy_of(path, tmp_path / "copy")
        beside = again.with_name("s.db-wal")
        changed = bytearray(beside.read_bytes())
        changed[at] ^= 1 << dice.randrange(8)
        beside.write_bytes(changed)
        log = SqliteSessionLog(again)
        found = {name: await found_in(log, name) for name in NAMES}
        refused += None in found.values()
        unreadable = {at for at in found if found[at] is None}
        if any(records not in (None, whole[name]) for name, records in found.items()):
            silent.append(at)
        for name in unreadable:
            with pytest.raises(CorruptLog):
                await log.acquire(name)
        log.close()
    assert silent == [], seed
    assert refused > 0


def copy_of(path: Path, folder: Path) -> Path:
    """A database and all that stands beside it, but for the index of its write-ahead log."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(path.parent, folder)
    (folder / f"{path.name}-shm").unlink(missing_ok=True)
    return folder / path.name


async def test_given_a_write_ahead_log_that_is_gone_when_used_then_every_use_names_what_is_lost(tmp_path: Path) -> None:
    path = killed(tmp_path / "killed")
    path.with_name("s.db-wal").unlink()
    path.with_name("s.db-shm").unlink()
    noted = path.with_name("s.db-marks")
    log = SqliteSessionLog(path)
    told = f"record 0 of session 'live' is damaged: it is lost, {noted} notes 40 acknowledged records"
    for use in (log.acquire, log.latest_seq):
        with pytest.raises(CorruptLog) as caught:
            await use("live")
        assert caught.value.message.startswith(told)
    for look in (log.read, log.intact):
        with pytest.raises(CorruptLog, match="notes 40 acknowledged records") if look == log.read else no_error():
            assert await look("live") == []
    assert (await log.verify("live")).sound is False
    assert await log.sessions() == []
    assert sorted(await log.unreadable(), key=str) == [
        Unreadable(str(noted), f"it notes 40 acknowledged records of {name!r}, which is lost") for name in NAMES
    ]
    await log.delete("live")
    await write(log, "live", [b"new"])
    assert await log.read("live") == [b"new"]


class no_error:
    """What does not raise."""

    def __enter__(self) -> None: ...

    def __exit__(self, *ended: object) -> None: ...


@pytest.mark.parametrize(("durability", "refused"), [("os", False), ("disk", True)])
async def test_given_a_machine_that_was_started_again_when_records_are_missing_then_only_flushed_ones_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str, refused: bool
) -> None:
    path = killed(tmp_path / "killed", durability)
    path.with_name("s.db-wal").unlink()
    path.with_name("s.db-shm").unlink()
    monkeypatch.setattr(marks, "boot", lambda: b"another start...")
    log = SqliteSessionLog(path)
    if refused:
        with pytest.raises(CorruptLog):
            await log.read("live")
    else:
        assert await log.read("live") == []


async def test_given_a_log_that_is_closed_when_nothing_waits_to_be_moved_then_nothing_is_noted_any_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    log = SqliteSessionLog(path)
    await write(log, "s", [b"a"])
    noted = path.with_name("s.db-marks")
    assert any(noted.read_bytes())
    log.close()
    assert not any(noted.read_bytes())
    assert await SqliteSessionLog(path).read("s") == [b"a"]


async def test_given_a_database_that_was_removed_when_it_is_made_anew_then_nothing_of_the_old_one_is_missed(
    tmp_path: Path,
) -> None:
    path = killed(tmp_path / "killed")
    for beside in ("", "-wal", "-shm"):
        path.with_name(f"s.db{beside}").unlink()
    log = SqliteSessionLog(path)
    assert (await log.read("live"), await log.unreadable()) == ([], [])
    await write(log, "live", [b"new"])
    assert (await log.read("live"), await log.read("at rest"), await log.unreadable()) == ([b"new"], [], [])


async def test_given_a_folder_that_was_removed_when_its_log_is_closed_then_it_is_not_made_anew(tmp_path: Path) -> None:
    log = SqliteSessionLog(tmp_path / "place" / "s.db")
    await write(log, "s", [b"a"])
    shutil.rmtree(tmp_path / "place")
    log.close()
    assert not (tmp_path / "place").exists()


async def test_given_many_sessions_when_they_are_given_back_then_their_marks_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepstrike.sessions.sqlite.SETTLE_BYTES", 40_000)
    path = tmp_path / "s.db"
    log = SqliteSessionLog(path)
    for number in range(60):
        await write(log, f"s{number}", [b"a"])
    await log._writer.lane.passed()
    assert path.with_name("s.db-marks").stat().st_size < 40 * marks.SIZE


async def test_given_a_session_at_rest_in_a_file_when_it_is_cut_where_a_batch_ends_then_the_lost_end_is_named(
    tmp_path: Path,
) -> None:
    log = FileSessionLog(tmp_path)
    await write(log, "s", [b"a"], [b"b", b"c"])
    (path,) = tmp_path.glob("*.log")
    shorter = FileSessionLog(tmp_path / "shorter")
    await write(shorter, "s", [b"a"])
    (cut,) = (tmp_path / "shorter").glob("*.log")
    os.truncate(path, cut.stat().st_size)
    again = FileSessionLog(tmp_path)
    noted = path.with_suffix(".mark")
    for attempt in (again.read("s"), again.read("s", 1), again.acquire("s"), again.latest_seq("s"), log.read("s")):
        with pytest.raises(CorruptLog) as caught:
            await attempt
        assert caught.value.message.startswith(
            f"record 1 of session 's' ({path}) is damaged: it is lost, {noted} notes 3 acknowledged records"
        )
    report = await again.verify("s")
    assert (report.records, report.sound) == (1, False)
    await again.delete("s")
    assert not noted.exists()
    await write(again, "s", [b"new"])
    assert await again.read("s") == [b"new"]


async def test_given_a_session_at_rest_in_a_file_when_its_last_record_is_torn_then_it_is_cut_and_the_loss_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await write(FileSessionLog(tmp_path), "s", [b"a"], [b"b", b"c"])
    (path,) = tmp_path.glob("*.log")
    os.truncate(path, path.stat().st_size - 1)
    log = FileSessionLog(tmp_path)
    report = await log.verify("s")
    assert (report.sound, report.records, report.torn) == (
        False,
        1,
        path.stat().st_size - path.read_bytes().index(b"b") + 16,
    )
    with caplog.at_level(logging.WARNING, "deepstrike"):
        await write(log, "s", [b"next"])
    assert caplog.records[0].getMessage() == (
        f"session 's' holds 1 records, and {path.with_suffix('.mark')} notes 3 that were acknowledged: a power cut has "
        "taken the others, or the file was cut"
    )
    again = FileSessionLog(tmp_path)
    assert (await again.read("s"), (await again.verify("s")).sound) == ([b"a", b"next"], True)


async def test_given_a_file_of_before_there_were_marks_when_used_then_it_is_as_it_was(tmp_path: Path) -> None:
    await write(FileSessionLog(tmp_path), "s", [b"a"])
    for noted in tmp_path.glob("*.mark"):
        noted.unlink()
    log = FileSessionLog(tmp_path)
    assert (await log.read("s"), (await log.verify("s")).sound) == ([b"a"], True)
    await write(log, "s", [b"b"])
    assert await FileSessionLog(tmp_path).read("s") == [b"a", b"b"]


async def test_given_a_reader_when_a_session_is_deleted_and_begun_anew_meanwhile_then_it_is_never_called_damaged(
    tmp_path: Path,
) -> None:
    for kind in KINDS[::2]:
        open_log = kind.at(tmp_path)
        writer, reader = open_log(), open_log()
        await write(writer, "s", *[[b"x"]] * 5)
        done = asyncio.Event()

        async def look(log: Durable = reader, over: asyncio.Event = done) -> int:
            looks = 0
            while not over.is_set():
                await log.read("s")
                looks += 1
            return looks

        looking = asyncio.create_task(look())
        for _ in range(10):
            await writer.delete("s")
            await write(writer, "s", [b"y"], [b"z"])
        done.set()
        assert await looking > 0


async def test_given_a_damaged_mark_when_the_session_is_used_then_it_proves_nothing(tmp_path: Path) -> None:
    for kind, name in ((SQLITE, "*-marks"), (KINDS[0], "*/*.mark")):
        log = kind.at(tmp_path)()
        await write(log, "s", [b"a"])
        (noted,) = tmp_path.glob(name)
        noted.write_bytes(b"\xff" * 200)
        assert await log.read("s") == [b"a"]
        await write(log, "s", [b"b"])
        assert await log.read("s") == [b"a", b"b"]
        noted.unlink()


async def test_given_somebody_who_reads_when_a_session_is_deleted_then_others_append_and_the_error_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepstrike.sessions.erasing.ERASE_SECONDS", 0.01)
    path = tmp_path / "s.db"
    log = SqliteSessionLog(path)
    await write(log, "gone", [b"a secret that was said"])
    owner = await log.acquire("live")
    await log.append("live", [b"0"], 0, owner=owner)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM records").fetchall()
    deleting = asyncio.create_task(log.delete("gone"))
    for seq in range(1, 20):
        await asyncio.wait_for(log.append("live", [b"%d" % seq], seq, owner=owner), 5)
    with pytest.raises(SessionError) as caught:
        await deleting
    assert (caught.value.code, caught.value.retryable) == ("log_busy", True)
    assert await log.sessions() == ["live"]
    reader.close()
    await log.delete("gone")
    assert b"a secret that was said" not in path.read_bytes() + path.with_name("s.db-wal").read_bytes()
    assert len(await log.read("live")) == 20


async def test_given_several_logs_when_they_begin_on_a_new_file_at_once_then_all_have_what_they_wrote(
    tmp_path: Path,
) -> None:
    logs = [SqliteSessionLog(tmp_path / "s.db") for _ in range(12)]
    await asyncio.gather(*(write(log, f"s{number}", [b"a"]) for number, log in enumerate(logs)))
    assert sorted(await logs[0].sessions()) == sorted(f"s{number}" for number in range(12))


async def test_given_another_sessions_file_or_a_later_layout_when_deleted_then_it_is_refused_and_stays(
    tmp_path: Path,
) -> None:
    log = FileSessionLog(tmp_path)
    await write(log, "a", [b"1"])
    (mine,) = tmp_path.glob("*.log")
    await write(log, "b", [b"2"])
    (other,) = {*tmp_path.glob("*.log")} - {mine}
    data = mine.read_bytes()
    mine.write_bytes(other.read_bytes())
    with pytest.raises(CorruptLog, match="says that it is that of 'b'"):
        await log.delete("a")
    mine.write_bytes(data.replace(b"deepstrike log 1 ", b"deepstrike log 2 "))
    with pytest.raises(SessionError) as caught:
        await log.delete("a")
    assert caught.value.code == "newer_format"
    assert mine.read_bytes() == data.replace(b"deepstrike log 1 ", b"deepstrike log 2 ")
    mine.write_bytes(b"x" + data[1:])
    await log.delete("a")
    assert not mine.exists()


@pytest.mark.parametrize("kind", [KINDS[1], KINDS[3]], ids=str)
async def test_given_new_folders_when_appends_are_flushed_then_so_are_the_names_of_the_folders(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    for module in ("disk", "database", "owned_file", "blob_files"):
        monkeypatch.setattr(f"deepstrike.sessions.{module}.flush_folder", flushed.append)
    log = kind.open(tmp_path / "a" / "b" / "s.db")
    await write(log, "s", [b"a"])
    await log.put_blob("s", b"blob")
    wanted = {tmp_path, tmp_path / "a", tmp_path / "a" / "b"}
    if kind is KINDS[1]:
        (shelf,) = (tmp_path / "a" / "b" / "s.db" / "blobs").iterdir()
        wanted |= {tmp_path / "a" / "b" / "s.db", shelf.parent, shelf}
    assert wanted <= set(flushed)


async def test_given_marks_that_are_being_put_in_order_when_a_session_is_acquired_then_it_waits_and_is_not_busy(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    log = SqliteSessionLog(path)
    await write(log, "s", [b"a"])
    (found,) = tmp_path.glob("*-marks")
    lock = tmp_path / "sessions.db-locks" / f"{file_stem('s')}.lock"
    with locked(found):
        held = SessionLock.take(lock, "s")
        waiting = asyncio.ensure_future(log.acquire("s"))
        await asyncio.wait({waiting}, timeout=0.1)
        early = waiting.done()
        held.release()
    owner = await asyncio.wait_for(waiting, 10)

    assert not early
    with pytest.raises(SessionBusy):
        await SqliteSessionLog(path).acquire("s")
    await log.release("s", owner)
