"""A disk that is full or fails gives a typed error and a whole log; later appends work."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from stores import FILES, KINDS, SQLITE, Durable, Kind, write

from deepstrike.errors import SessionBusy, SessionError
from deepstrike.sessions import database, owned_file, rows
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.listing import Unreadable
from deepstrike.sessions.names import file_stem
from deepstrike.sessions.sqlite import SqliteSessionLog

SOURCES = Path(__file__).parents[2] / "python"

LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from deepstrike.errors import SessionError
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

async def main():
    log = (FileSessionLog if sys.argv[1] == "file-os" else SqliteSessionLog)(Path(sys.argv[2]))
    owner = await log.acquire("s")
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    written = 0
    while True:
        try:
            await log.append("s", [b"x" * 5_000] * 3, written, owner=owner)
        except SessionError as error:
            failed = error
            break
        written += 3
    assert len(await log.read("s")) == written > 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert await log.append("s", [b"behind"], written, owner=owner) == written
    await log.release("s", owner)
    assert len(await log.read("s")) == written + 1
    print(failed.code)

asyncio.run(main())
"""


async def test_given_a_pipe_and_a_folder_named_like_sessions_when_used_then_nothing_waits_and_others_are_there(
    tmp_path: Path,
) -> None:
    log = FileSessionLog(tmp_path)
    await write(log, "s", [b"a"])
    pipe, folder = (tmp_path / f"{file_stem(name)}.log" for name in ("a-pipe", "b-folder"))
    os.mkfifo(pipe)
    folder.mkdir()

    reason = "it is no regular file"
    assert await asyncio.wait_for(log.sessions(), 30) == ["s"]
    assert await log.unreadable() == [Unreadable(str(pipe), reason), Unreadable(str(folder), reason)]
    for name in ("a-pipe", "b-folder"):
        for use in (log.read, log.acquire):
            with pytest.raises(SessionError, match=reason) as caught:
                await asyncio.wait_for(use(name), 30)
            assert caught.value.code == "log_io"

    pipe.unlink()
    await log.release("a-pipe", await log.acquire("a-pipe"))


@pytest.mark.parametrize("kind", [FILES, SQLITE], ids=str)
def test_given_no_room_when_a_batch_is_appended_then_the_log_is_whole_and_goes_on_once_there_is(
    kind: Kind, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, kind.name, tmp_path / "log.db"],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() in {FILES.name: ("disk_full",), SQLITE.name: ("disk_full", "log_io")}[kind.name]


async def test_given_a_full_database_when_a_batch_is_appended_then_it_is_disk_full_and_later_ones_work(
    tmp_path: Path,
) -> None:
    log = SqliteSessionLog(tmp_path / "s.db")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    await log._writer.run(lambda connection: connection.execute("PRAGMA max_page_count = 12").fetchall())
    with pytest.raises(SessionError) as caught:
        await log.append("s", [b"x" * 100_000], 1, owner=owner)
    if sys.version_info >= (3, 11):
        assert (caught.value.code, caught.value.retryable) == ("disk_full", True)
    assert await log.append("s", [b"small"], 1, owner=owner) == 1
    assert await log.read("s") == [b"a", b"small"]


Write = Callable[[int, bytes], int]


def failing_after(size: int, code: int, real: Write) -> Write:
    """A disk that takes `size` bytes of what is written, in two pieces, and then fails."""
    left = [size]

    def fail(descriptor: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(code, os.strerror(code))
        taken = real(descriptor, data[: (left[0] + 1) // 2])
        left[0] -= taken
        return taken

    return fail


@pytest.mark.parametrize(("code", "named"), [(errno.ENOSPC, "disk_full"), (errno.EIO, "log_io")])
@pytest.mark.parametrize("size", [0, 1, 20, 150])
async def test_given_a_write_that_fails_in_the_middle_when_it_is_taken_back_then_later_appends_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, code: int, named: str
) -> None:
    log = FileSessionLog(tmp_path)
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    with monkeypatch.context() as patched:
        patched.setattr("deepstrike.sessions.disk.os.write", failing_after(size, code, os.write))
        with pytest.raises(SessionError) as caught:
            await log.append("s", [b"b" * 100, b"c" * 100], 1, owner=owner)
    assert (caught.value.code, caught.value.retryable) == (named, named == "disk_full")
    assert await log.read("s") == [b"a"]
    assert await log.append("s", [b"d"], 1, owner=owner) == 1
    await log.release("s", owner)
    report = await FileSessionLog(tmp_path).verify("s")
    assert (report.records, report.torn, report.sound) == (2, 0, True)


async def test_given_a_first_append_that_fails_when_it_is_repeated_then_the_session_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileSessionLog(tmp_path)
    await write(log, "before", [b"a"])
    owner = await log.acquire("s")
    with monkeypatch.context() as patched:
        patched.setattr(owned_file, "write_all", refuse)
        with pytest.raises(SessionError, match=r"writing .* failed"):
            await log.append("s", [b"a"], 0, owner=owner)
    assert await log.sessions() == ["before"]
    assert await log.append("s", [b"a"], 0, owner=owner) == 0
    assert (await log.sessions(), await FileSessionLog(tmp_path).read("s")) == (["before", "s"], [b"a"])


def refuse(descriptor: int, data: bytes) -> None:
    os.write(descriptor, data[:30])
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def fails(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(("where", "call"), [(os, "read"), (os, "open"), (os, "fstat"), (Path, "glob")])
async def test_given_a_disk_that_fails_when_a_session_is_read_then_it_is_log_io_and_never_damage_nor_an_os_error(
    where: object, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(FileSessionLog(tmp_path), "s", [b"a"])
    ref = await FileSessionLog(tmp_path).put_blob("s", b"blob")
    log = FileSessionLog(tmp_path)
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: write(log, "s"),
        lambda: log.read("s"),
        lambda: log.latest_seq("s"),
        lambda: log.verify("s"),
        lambda: log.intact("s"),
        lambda: log.get_blob(ref),
        lambda: log.put_blob("s", b"more"),
        lambda: log.delete("s"),
    ]
    told: list[tuple[str, bool]] = []
    for ask in asked:
        with monkeypatch.context() as patched:
            patched.setattr(where, call, fails)
            try:
                await ask()
            except SessionError as error:
                told.append((error.code, "Input/output error" in error.message))
    assert set(told) == {("log_io", True)}
    assert await log.read("s") == [b"a"]


async def test_given_a_write_that_cannot_be_taken_back_when_reopened_then_its_tail_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileSessionLog(tmp_path)
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    with monkeypatch.context() as patched:
        patched.setattr(owned_file, "write_all", refuse)
        patched.setattr("deepstrike.sessions.owned_file.os.ftruncate", lambda descriptor, size: refuse(descriptor, b""))
        with pytest.raises(SessionError, match="writing"):
            await log.append("s", [b"b" * 100], 1, owner=owner)
    with pytest.raises(SessionError, match=r"could not be taken back, so nothing more is written; release\(\) and"):
        await log.append("s", [b"c"], 1, owner=owner)
    await log.release("s", owner)
    await write(log, "s", [b"d"])
    assert await FileSessionLog(tmp_path).read("s") == [b"a", b"d"]


@pytest.mark.parametrize("kind", KINDS[::2], ids=str)
async def test_given_a_file_system_without_locks_when_acquired_then_the_error_names_it(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unable)
    log = kind.open(tmp_path / "log.db")
    with pytest.raises(SessionError, match=r"cannot lock files .* keep the session log on a local disk") as caught:
        await log.acquire("s")
    assert caught.value.code == "no_lock"


async def test_given_a_flush_that_takes_long_then_the_event_loop_goes_on_and_the_batch_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing, go_on = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        flushing.set()
        assert go_on.wait(20)

    log = FileSessionLog(tmp_path, durability="disk")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    monkeypatch.setattr(owned_file, "flush", slow)
    append = asyncio.create_task(log.append("s", [b"b"], 1, owner=owner))
    await asyncio.to_thread(flushing.wait, 20)
    append.cancel()
    with pytest.raises(asyncio.CancelledError):
        await append
    asking = asyncio.create_task(log.latest_seq("s"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not asking.done()
    go_on.set()
    assert await asking == 1
    assert await log.append("s", [b"c"], 2, owner=owner) == 2


async def test_given_a_write_ahead_log_that_another_program_has_moved_then_its_new_head_is_flushed_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    threads: list[int] = []
    here, append = threading.get_ident(), rows.append

    def watched(
        connection: sqlite3.Connection, session_id: str, tail: rows.Tail, records: Sequence[bytes]
    ) -> rows.Tail:
        threads.append(threading.get_ident())
        return append(connection, session_id, tail, records)

    monkeypatch.setattr(rows, "append", watched)
    log = SqliteSessionLog(tmp_path / "s.db")
    owner = await log.acquire("s")
    await log.append("s", [b"0"], 0, owner=owner)
    for seq in range(1, 13):
        if seq % 4 == 0:
            await asyncio.sleep(0.02)  # coarser than the times of files
            with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as other:
                assert other.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
        await log._writer.lane.passed()
        await log.append("s", [b"%d" % seq], seq, owner=owner)
    await log.release("s", owner)
    assert [thread == here for thread in threads] == [seq % 4 != 0 for seq in range(1, 13)]
    assert await log.read("s") == [b"%d" % seq for seq in range(13)]


@pytest.mark.parametrize("kind", KINDS[::2], ids=str)
async def test_given_an_acquire_that_is_cancelled_then_the_session_is_not_left_busy(kind: Kind, tmp_path: Path) -> None:
    log = kind.open(tmp_path / "log.db")
    await write(log, "s", [b"a"])
    for steps in range(8):
        task = asyncio.create_task(log.acquire("s"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and not isinstance(task.exception(), SessionBusy):
            await log.release("s", task.result())
    owner = await acquired_in_the_end(log)
    assert await log.append("s", [b"b"], 1, owner=owner) == 1


async def acquired_in_the_end(log: Durable) -> str:
    """What was given up in mid-air is undone by its thread, soon."""
    for _ in range(500):
        with contextlib.suppress(SessionBusy):
            return await log.acquire("s")
        await asyncio.sleep(0.01)
    raise AssertionError("the session stays busy")


@pytest.mark.parametrize("live", [True, False])
async def test_given_a_large_database_when_a_session_is_deleted_then_it_is_rewritten_unless_a_run_is_live(
    live: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("deepstrike.sessions.database.REWRITE_BYTES", 10_000)
    log = SqliteSessionLog(tmp_path / "s.db")
    for _ in range(10):
        for name in ("gone", "kept"):
            await write(log, name, [name.encode() * 500])
    owner = await log.acquire("kept")
    if not live:
        await log.release("kept", owner)
    await log.delete("gone")
    assert ("a run is live on it, so it is not rewritten now: pieces" in caplog.text) == live
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        [(free,)] = connection.execute("PRAGMA freelist_count").fetchall()
    assert (free > 0) == live
    assert await log.sessions() == ["kept"]


class NoRoom(sqlite3.Connection):
    """A disk that has no room for a copy."""

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        if sql == "VACUUM":
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, parameters)  # type: ignore[arg-type]  # as it came


async def test_given_no_room_for_a_copy_when_a_session_is_deleted_then_it_is_and_a_warning_says_what_may_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("deepstrike.sessions.database.sqlite3.connect", partial(sqlite3.connect, factory=NoRoom))
    log = SqliteSessionLog(tmp_path / "s.db")
    await write(log, "gone", [b"a"])
    await log.delete("gone")
    assert "could not be rewritten (database or disk is full): pieces of what was deleted may be left" in caplog.text
    assert await log.sessions() == []


@pytest.mark.skipif(sys.platform == "win32", reason="writes otherwise there")
async def test_given_a_mark_that_is_written_in_part_when_a_session_is_acquired_then_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    log = SqliteSessionLog(tmp_path / "s.db")
    await write(log, "s", [b"a"])
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda descriptor, data, at: whole(descriptor, data[:60], at))
        with pytest.raises(SessionError) as caught:
            await log.acquire("another")
    assert (caught.value.code, caught.value.retryable) == ("disk_full", True)
    await write(log, "another", [b"b"])
    assert await log.sessions() == ["s", "another"]


async def test_given_a_deletion_that_is_cancelled_when_it_has_begun_then_nobody_begins_on_the_session_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, other = SqliteSessionLog(tmp_path / "s.db"), SqliteSessionLog(tmp_path / "s.db")
    await write(log, "s", [b"a"])
    begun, go_on, remove = threading.Event(), threading.Event(), rows.remove

    def slowly(connection: sqlite3.Connection, session_id: str, shelf: str) -> bool:
        begun.set()
        assert go_on.wait(10)
        return remove(connection, session_id, shelf)

    monkeypatch.setattr(rows, "remove", slowly)
    deleting = asyncio.create_task(log.delete("s"))
    assert await asyncio.to_thread(begun.wait, 10)
    deleting.cancel()
    await asyncio.wait({deleting})
    with pytest.raises(SessionBusy):
        await other.acquire("s")
    go_on.set()
    owner = await acquired_in_the_end(other)
    assert await other.append("s", [b"b"], 0, owner=owner) == 0
    assert await log.read("s") == [b"b"]
