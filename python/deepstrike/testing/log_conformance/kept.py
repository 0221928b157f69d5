"""Sessions and blobs: their names, their order, their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import SessionBusy, SessionError, UnknownSession
from deepstrike.testing.log_conformance.checks import Checked, write
from deepstrike.testing.trying import raises, same

if TYPE_CHECKING:
    from deepstrike.sessions.base import SessionLog


async def sessions_stand_in_order_of_their_first_append(log: SessionLog) -> None:
    for session_id in ("zebra", "ant", "bee"):
        await write(log, session_id, [b"1"])
    await write(log, "ant", [b"2"])
    held = await log.acquire("only acquired")
    same(await log.sessions(), ["zebra", "ant", "bee"], "sessions")
    await log.release("only acquired", held)


async def delete_removes_records_and_blobs(log: SessionLog) -> None:
    await write(log, "s", [b"a"])
    await write(log, "t", [b"a"])
    gone, kept = await log.put_blob("s", b"data"), await log.put_blob("t", b"data")
    await log.delete("s")
    same(await log.sessions(), ["t"], "sessions")
    same((await log.read("s"), await log.latest_seq("s")), ([], -1), "the deleted session")
    await raises(SessionError, log.get_blob(gone), "its blob")
    same(await log.get_blob(kept), b"data", "the same bytes in another session")
    await write(log, "s", [b"new"])
    same(await log.read("s"), [b"new"], "a new session of the same id")
    same(await log.sessions(), ["t", "s"], "sessions after it")


async def delete_refuses_a_live_and_an_unknown_session(log: SessionLog) -> None:
    await raises(UnknownSession, log.delete("s"), "delete of what never was")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    await raises(SessionBusy, log.delete("s"), "delete while a run is live")
    same(await log.read("s"), [b"a"], "read after it")
    await log.release("s", owner)
    await log.delete("s")
    await raises(UnknownSession, log.delete("s"), "delete twice")


async def session_ids_are_any_text(log: SessionLog) -> None:
    ids = ["", " ", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "NUL", "a\0b", "a\nb", "A", "a", "é", "e\u0301"]
    ids += ["日本語", "😀", "'; --", "%", "*", "?", "x" * 5_000, "y" * 5_000 + "1", "y" * 5_000 + "2"]
    for session_id in ids:
        await write(log, session_id, [session_id.encode(), b"end"])
    same(await log.sessions(), ids, "sessions")
    for session_id in ids:
        same(await log.read(session_id), [session_id.encode(), b"end"], f"read of {session_id[:20]!r}")
        same(await log.get_blob(await log.put_blob(session_id, b"blob")), b"blob", f"blob of {session_id[:20]!r}")
        await log.delete(session_id)
    same(await log.sessions(), [], "sessions after deleting them all")


async def blobs_are_read_in_parts(log: SessionLog) -> None:
    data = bytes(range(256)) * 400
    ref = await log.put_blob("s", data)
    same(await log.get_blob(ref), data, "the whole")
    for offset, length in ((0, 10), (5, 0), (100, 1000), (len(data) - 3, 10), (len(data), 5), (len(data) + 9, None)):
        end = None if length is None else offset + length
        same(await log.get_blob(ref, offset, length), data[offset:end], f"{length} bytes from {offset}")
    same(await log.get_blob(ref, 102_390), data[102_390:], "from an offset to the end")


async def blobs_are_kept_apart_and_unknown_ones_refused(log: SessionLog) -> None:
    refs = [await log.put_blob("s", data) for data in (b"", b"one", b"two", b"one")]
    same([await log.get_blob(ref) for ref in refs], [b"", b"one", b"two", b"one"], "the blobs")
    for ref in ("", "unknown", "../../etc/passwd", "\0", "x" * 5_000):
        await raises(SessionError, log.get_blob(ref), f"get_blob({ref[:20]!r})")
    same(await log.sessions(), [], "a session that holds blobs alone is not listed")


async def blobs_may_be_large_and_are_kept_once(log: SessionLog) -> None:
    data = bytes(range(256)) * 20_000
    ref = await log.put_blob("s", data)
    same(await log.put_blob("s", data), ref, "the reference of the same bytes")
    same(await log.get_blob(ref) == data, True, "the bytes of a blob of 5 MB")
    same(await log.get_blob(ref, 5_000_000, 3), data[5_000_000:5_000_003], "a part of it")
    await raises(UnknownSession, log.delete("t"), "delete of a session that holds nothing")
    await log.delete("s")
    await raises(SessionError, log.get_blob(ref), "a blob of a session that held blobs alone")


CHECKS: tuple[Checked, ...] = (
    sessions_stand_in_order_of_their_first_append,
    delete_removes_records_and_blobs,
    delete_refuses_a_live_and_an_unknown_session,
    session_ids_are_any_text,
    blobs_are_read_in_parts,
    blobs_are_kept_apart_and_unknown_ones_refused,
    blobs_may_be_large_and_are_kept_once,
)
