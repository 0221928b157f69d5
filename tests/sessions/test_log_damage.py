"""A torn tail is cut, kept aside and never fused; damage is found and named; what was acknowledged stays exact."""

from __future__ import annotations

import json
import logging
import random
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from stores import FULL, KINDS, Kind, seeded, write

from deepstrike.errors import CorruptLog, SessionError, StaleWriter
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.listing import Unreadable
from deepstrike.sessions.sqlite import SqliteSessionLog


def batches_of(size: int, dice: random.Random) -> list[list[bytes]]:
    """Batches of records as a run writes them, about `size` bytes in all."""
    batches: list[list[bytes]] = []
    seq = written = 0
    while written < size:
        batch: list[bytes] = []
        for _ in range(dice.randint(1, 4)):
            text = "x" * dice.choice((0, 30, 200, 600))
            batch.append(json.dumps({"seq": seq, "at": 1_700_000_000_000 + seq, "event": {"text": text}}).encode())
            seq += 1
        batches.append(batch)
        written += sum(map(len, batch))
    return batches


async def file_with(folder: Path, *batches: Sequence[bytes]) -> Path:
    """The session's file, as a crash leaves it: nothing is noted of where it ends."""
    await write(FileSessionLog(folder), "s", *batches)
    (path,) = folder.glob("*.log")
    path.with_suffix(".mark").unlink()
    return path


def start_of(size: int, head: int) -> int:
    """Where a tail begins if no batch is whole: a head that was not finished belongs to it."""
    return head if size >= head else 0


async def test_given_a_log_cut_at_any_byte_when_it_goes_on_then_it_holds_the_exact_prefix(tmp_path: Path) -> None:
    seed, dice = seeded()
    batches = batches_of(65_536 if FULL else 3_000, dice)
    path = await file_with(tmp_path / "whole", *batches)
    whole = path.read_bytes()
    # What each size of the file must give: the batches that had been written by then.
    probe = tmp_path / "probe"
    written = [await file_with(probe / str(count), *batches[:count]) for count in range(1, len(batches) + 1)]
    marks = [copy.stat().st_size for copy in written]
    head = whole.index(b"\n") + 1
    for size in range(len(whole) + 1):
        kept = [record for batch, mark in zip(batches, marks, strict=True) if mark <= size for record in batch]
        folder = tmp_path / "cut"
        folder.mkdir(exist_ok=True)
        (folder / path.name).write_bytes(whole[:size])
        log = FileSessionLog(folder)
        assert await log.read("s") == kept, (seed, size)
        owner = await log.acquire("s")
        assert await log.append("s", [b"next", b"more"], len(kept), owner=owner) == len(kept) + 1, (seed, size)
        await log.release("s", owner)
        assert await FileSessionLog(folder).read("s") == [*kept, b"next", b"more"], (seed, size)
        aside = b"".join(torn.read_bytes() for torn in folder.glob("*.torn-*"))
        assert aside == whole[max(mark for mark in (start_of(size, head), *marks) if mark <= size) : size], (seed, size)
        shutil.rmtree(folder)


async def test_given_any_byte_of_a_file_flipped_when_it_is_read_then_it_is_never_taken_for_whole(
    tmp_path: Path,
) -> None:
    seed, dice = seeded()
    batches = batches_of(65_536 if FULL else 2_500, dice)
    path = await file_with(tmp_path, *batches)
    whole = path.read_bytes()
    log = FileSessionLog(tmp_path)
    silent: list[int] = []
    others: set[str] = set()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        try:
            await log.read("s")
        except CorruptLog:
            pass
        except SessionError as error:  # the version in the head is one of the bytes
            others.add(error.code)
        else:
            silent.append(at)
    assert (silent, others - {"newer_format"}) == ([], set()), seed


async def test_given_any_byte_of_a_database_flipped_when_it_is_read_then_the_records_are_right_or_an_error_is_raised(
    tmp_path: Path,
) -> None:
    seed, dice = seeded()
    path = tmp_path / "s.db"
    log = SqliteSessionLog(path)
    batches = batches_of(65_536 if FULL else 12_000, dice)
    records = [record for batch in batches for record in batch]
    await write(log, "s", *batches)
    await write(log, "t", [b"another"])
    log.close()
    whole = path.read_bytes()
    assert not path.with_name("s.db-wal").exists()
    wrong: list[int] = []
    for at in range(len(whole)) if FULL else sorted(dice.sample(range(len(whole)), 1_500)):
        changed = bytearray(whole)
        changed[at] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        for beside in ("s.db-wal", "s.db-shm"):
            path.with_name(beside).unlink(missing_ok=True)
        again = SqliteSessionLog(path)
        try:
            found = await again.read("s")
            names = await again.sessions()
        except SessionError:
            continue
        finally:
            again.close()
        if found != records or names != ["s", "t"]:
            wrong.append(at)
    assert wrong == [], seed


async def test_given_damage_when_it_is_met_then_the_error_names_session_record_place_and_remedy(tmp_path: Path) -> None:
    path = await file_with(tmp_path, [b"zero"], [b"one", b"two"], [b"three"])
    data = path.read_bytes()
    path.write_bytes(data.replace(b"two", b"tvo"))
    log = FileSessionLog(tmp_path)
    at = data.index(b"two") - 16
    for attempt in (log.read("s"), log.read("s", 3), log.acquire("s")):
        with pytest.raises(CorruptLog) as caught:
            await attempt
        assert caught.value.message.startswith(
            f"record 2 of session 's' ({path}, byte {at}) is damaged: its checksum is"
        )
        assert caught.value.message.endswith("delete() the session to use its id again")
    assert path.read_bytes() == data.replace(b"two", b"tvo")
    assert await log.sessions() == ["s"]
    await log.delete("s")
    assert await log.read("s") == []


async def test_given_a_lost_end_of_a_session_at_rest_when_read_from_a_database_then_it_is_named(tmp_path: Path) -> None:
    log = SqliteSessionLog(tmp_path / "s.db")
    await write(log, "s", [b"a"], [b"b", b"c"])
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("DELETE FROM records WHERE record = ?", (b"c",))
    connection.close()
    for attempt in (log.read("s"), log.read("s", 2), log.acquire("s"), log.latest_seq("s")):
        with pytest.raises(CorruptLog, match=r"^record 2 of session 's'.* is damaged: it is lost; "):
            await attempt
    report = await log.verify("s")
    assert (report.records, report.sound) == (2, False)


async def test_given_a_torn_tail_when_acquired_then_it_is_kept_aside_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = await file_with(tmp_path, [b"zero"], [b"one", b"two"])
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    log = FileSessionLog(tmp_path)
    before = await log.verify("s")
    with caplog.at_level(logging.WARNING, "deepstrike"):
        owner = await log.acquire("s")
    (aside,) = tmp_path.glob("*.torn-1")
    tail = data[data.index(b"one") - 16 : -1]
    assert aside.read_bytes() == tail
    assert [record.getMessage() for record in caplog.records] == [
        f"session 's': an append was never finished; its {len(tail)} bytes behind record 0 were cut off and kept in "
        f"{aside}"
    ]
    assert await log.append("s", [b"new"], 1, owner=owner) == 1
    await log.release("s", owner)
    after = await log.verify("s")
    assert (before.records, before.torn, before.aside, before.sound) == (1, len(tail), (), True)
    assert (after.records, after.torn, after.aside, after.sound) == (2, 0, (str(aside),), True)
    await log.delete("s")
    assert [found for found in tmp_path.iterdir() if found.is_file() and found.name != "order"] == []


@pytest.mark.parametrize("left", [b"", b"\0" * 4096, b"deepstrike log 1 000"])
async def test_given_a_file_whose_first_append_was_never_finished_when_used_then_the_session_is_new(
    tmp_path: Path, left: bytes
) -> None:
    path = await file_with(tmp_path, [b"a"])
    path.write_bytes(left)
    log = FileSessionLog(tmp_path)
    assert (await log.sessions(), await log.read("s"), await log.latest_seq("s")) == ([], [], -1)
    await write(log, "s", [b"b"])
    assert await FileSessionLog(tmp_path).read("s") == [b"b"]


async def test_given_zeros_that_a_power_cut_has_left_when_acquired_then_they_are_cut_off(tmp_path: Path) -> None:
    path = await file_with(tmp_path, [b"a" * 700], [b"b" * 700])
    data = path.read_bytes()
    path.write_bytes(data[:1024] + b"\0" * (len(data) - 1024) + b"\0" * 3000)
    await write(FileSessionLog(tmp_path), "s", [b"c"])
    assert await FileSessionLog(tmp_path).read("s") == [b"a" * 700, b"c"]


async def test_given_zeros_inside_a_log_when_read_then_that_is_damage(tmp_path: Path) -> None:
    path = await file_with(tmp_path, [b"a" * 700], [b"b" * 700], [b"c" * 700])
    data = path.read_bytes()
    path.write_bytes(data[:1024] + b"\0" * 300 + data[1324:])
    with pytest.raises(CorruptLog, match="record 1 of session 's'"):
        await FileSessionLog(tmp_path).read("s")


async def test_given_the_file_of_another_session_when_used_then_it_is_refused(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path)
    await write(log, "mine", [b"a"])
    await write(log, "yours", [b"b"])
    mine, yours = sorted(tmp_path.glob("*.log"))
    shutil.copyfile(yours, mine)
    with pytest.raises(CorruptLog, match="should be the log of session 'mine' and says that it is that of 'yours'"):
        await log.read("mine")


async def test_given_a_damaged_head_when_listed_then_a_warning_names_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = await file_with(tmp_path, [b"a"])
    path.write_bytes(path.read_bytes().replace(b"deepstrike log", b"deepstrike lug"))
    log = FileSessionLog(tmp_path)
    with caplog.at_level(logging.WARNING, "deepstrike"):
        await write(log, "t", [b"b"])
        assert await log.sessions() == ["t"]
    assert caplog.records[-1].getMessage() == f"{path} is not listed: its head is damaged"
    assert await log.unreadable() == [Unreadable(str(path), "its head is damaged")]


async def test_given_any_byte_of_a_file_flipped_when_listed_then_its_session_or_the_file_is_there(
    tmp_path: Path,
) -> None:
    seed, dice = seeded()
    path = await file_with(tmp_path, [b"first", b"of two"])
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    log = FileSessionLog(tmp_path)
    lost: list[int] = []
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        listed, unreadable = await log.sessions(), [file.path for file in await log.unreadable()]
        if (listed, unreadable) != (([], [str(path)]) if at < head else (["s"], [])):
            lost.append(at)
    assert lost == [], seed


async def test_given_a_file_cut_within_its_first_append_when_listed_then_there_is_neither_session_nor_damage(
    tmp_path: Path,
) -> None:
    path = await file_with(tmp_path, [b"first", b"of two"])
    whole = path.read_bytes()
    log = FileSessionLog(tmp_path)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert (await log.sessions(), await log.unreadable()) == ([], []), size


async def test_given_a_copy_under_another_name_when_listed_then_the_session_is_there_once(tmp_path: Path) -> None:
    path = await file_with(tmp_path, [b"a"])
    copy = tmp_path / "copy.log"
    shutil.copyfile(path, copy)
    log = FileSessionLog(tmp_path)
    assert await log.sessions() == ["s"]
    told = "it holds session 's' and has another name than its own"
    assert await log.unreadable() == [Unreadable(str(copy), told)]


async def test_given_somebody_who_writes_without_the_lock_when_the_owner_appends_then_it_is_a_stale_writer(
    tmp_path: Path,
) -> None:
    path = await file_with(tmp_path, [b"a"])
    log = FileSessionLog(tmp_path)
    owner = await log.acquire("s")
    await log.append("s", [b"b"], 1, owner=owner)
    with path.open("ab") as file:
        file.write(b"stray")
    with pytest.raises(StaleWriter):
        await log.append("s", [b"c"], 2, owner=owner)
    await log.release("s", owner)
    assert await FileSessionLog(tmp_path).read("s") == [b"a", b"b"]


async def test_given_a_file_that_was_removed_under_its_owner_when_appended_to_then_it_says_so(tmp_path: Path) -> None:
    path = await file_with(tmp_path, [b"a"])
    log = FileSessionLog(tmp_path)
    owner = await log.acquire("s")
    await log.append("s", [b"b"], 1, owner=owner)
    path.unlink()
    with pytest.raises(SessionError, match="was removed while a run was live on it"):
        await log.append("s", [b"c"], 2, owner=owner)


@pytest.mark.parametrize("kind", KINDS[::2], ids=str)
async def test_the_report_names_blobs_that_are_gone_or_changed(kind: Kind, tmp_path: Path) -> None:
    open_log = kind.at(tmp_path)
    log = open_log()
    refs = [await log.put_blob("s", data) for data in (b"kept", b"changed", b"missing")]
    await write(log, "s", [json.dumps({"refs": refs}).encode()])
    spoil(open_log(), tmp_path, refs)
    report = await open_log().verify("s")
    assert (report.missing, report.damaged_blobs, report.sound) == ((refs[2],), (refs[1],), False)
    assert (report.records, report.damage) == (1, None)


def spoil(log: FileSessionLog | SqliteSessionLog, folder: Path, refs: list[str]) -> None:
    """Change the second blob behind the log's back and take the third away."""
    if isinstance(log, FileSessionLog):
        changed, missing = (next(folder.rglob(ref)) for ref in refs[1:])
        changed.write_bytes(b"chanqed")
        missing.unlink()
        return
    with sqlite3.connect(next(folder.glob("*.db"))) as connection:
        connection.execute("UPDATE blobs SET data = ? WHERE ref = ?", (b"chanqed", refs[1]))
        connection.execute("DELETE FROM blobs WHERE ref = ?", (refs[2],))
    connection.close()
