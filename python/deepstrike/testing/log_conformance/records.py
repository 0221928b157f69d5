"""Records go in and come out as they are, in batches, each at its seq."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import StaleWriter
from deepstrike.testing.log_conformance.checks import Checked, write
from deepstrike.testing.trying import raises, same

if TYPE_CHECKING:
    from deepstrike.sessions.base import SessionLog


async def a_new_session_is_empty(log: SessionLog) -> None:
    same(await log.read("new"), [], "read")
    same(await log.latest_seq("new"), -1, "latest_seq")
    same(await log.sessions(), [], "sessions")


async def append_returns_the_seq_of_the_last_record(log: SessionLog) -> None:
    owner = await log.acquire("s")
    same(await log.append("s", [b"a"], 0, owner=owner), 0, "one record")
    same(await log.append("s", [b"b", b"c", b"d"], 1, owner=owner), 3, "three more")
    same(await log.latest_seq("s"), 3, "latest_seq")


async def read_gives_the_records_from_a_seq_on(log: SessionLog) -> None:
    await write(log, "s", [b"0"], [b"1", b"2"], [b"3"])
    for first in range(6):
        same(await log.read("s", first), [b"0", b"1", b"2", b"3"][first:], f"read from {first}")


async def bytes_in_are_bytes_out(log: SessionLog) -> None:
    records = [b"", b"\n", b"\r\n", b"\0", b'{"a":"\\n"}\n', bytes(range(256)), b"\xff" * 1000, b"x" * 300_000]
    await write(log, "s", records, [b"last"])
    same(await log.read("s"), [*records, b"last"], "read")


async def an_empty_batch_writes_nothing(log: SessionLog) -> None:
    owner = await log.acquire("s")
    same(await log.append("s", [], 0, owner=owner), -1, "append to an empty session")
    same(await log.sessions(), [], "sessions")
    await log.append("s", [b"a"], 0, owner=owner)
    same(await log.append("s", [], 1, owner=owner), 0, "append behind a record")


async def a_batch_at_another_seq_is_refused_and_leaves_nothing(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await raises(StaleWriter, log.append("s", [b"x"], 1, owner=owner), "a gap on an empty session")
    await log.append("s", [b"a", b"b"], 0, owner=owner)
    for wrong in (0, 1, 3):
        await raises(StaleWriter, log.append("s", [b"x", b"y"], wrong, owner=owner), f"append at {wrong}")
    same(await log.read("s"), [b"a", b"b"], "read")
    same(await log.append("s", [b"c"], 2, owner=owner), 2, "append at the right seq")


async def a_list_that_is_changed_later_does_not_change_the_log(log: SessionLog) -> None:
    batch = [b"a", b"b"]
    await write(log, "s", batch)
    batch[0] = b"changed"
    (await log.read("s")).append(b"more")
    same(await log.read("s"), [b"a", b"b"], "read")


async def a_long_session_keeps_every_record(log: SessionLog) -> None:
    records = [f"record {seq}".encode() for seq in range(2000)]
    await write(log, "s", *(records[first : first + 7] for first in range(0, len(records), 7)))
    same(await log.read("s"), records, "read")
    same(await log.read("s", 1995), records[1995:], "read from 1995")


CHECKS: tuple[Checked, ...] = (
    a_new_session_is_empty,
    append_returns_the_seq_of_the_last_record,
    read_gives_the_records_from_a_seq_on,
    bytes_in_are_bytes_out,
    an_empty_batch_writes_nothing,
    a_batch_at_another_seq_is_refused_and_leaves_nothing,
    a_list_that_is_changed_later_does_not_change_the_log,
    a_long_session_keeps_every_record,
)
