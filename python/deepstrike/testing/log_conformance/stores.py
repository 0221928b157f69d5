"""What two logs on one store must hold, beside what is asked of one."""

from __future__ import annotations

import asyncio

from deepstrike.errors import SessionBusy, SessionError, StaleWriter
from deepstrike.testing.log_conformance.checks import OpenLog, Stored, run_in_threads, settled, write
from deepstrike.testing.trying import raises, same


async def another_log_finds_what_one_has_written(open_log: OpenLog) -> None:
    first = open_log()
    await write(first, "zebra", [b"1"], [b"2", b"3"])
    await write(first, "ant", [b"x" * 300_000])
    refs = [await first.put_blob("zebra", data) for data in (b"", b"blob", b"y" * 3_000_000)]
    again = open_log()
    same(await again.sessions(), ["zebra", "ant"], "sessions")
    same(
        [await again.read("zebra", first_seq) for first_seq in range(4)],
        [[b"1", b"2", b"3"][n:] for n in range(4)],
        "read",
    )
    same((await again.latest_seq("zebra"), await again.latest_seq("ant")), (2, 0), "latest_seq")
    same([len(await again.get_blob(ref)) for ref in refs], [0, 4, 3_000_000], "the sizes of the blobs")


async def the_order_of_sessions_is_that_of_the_store(open_log: OpenLog) -> None:
    first, second = open_log(), open_log()
    for log, session_id in ((first, "z"), (second, "b"), (first, "a"), (second, "z"), (second, "c")):
        await write(log, session_id, [b"1"])
    await first.delete("b")
    await write(second, "b", [b"1"])
    same(await first.sessions(), ["z", "a", "c", "b"], "sessions in the one")
    same(await open_log().sessions(), ["z", "a", "c", "b"], "sessions in a third")


async def one_owner_over_all_logs(open_log: OpenLog) -> None:
    first, second = open_log(), open_log()
    owner = await first.acquire("s")
    await first.append("s", [b"a"], 0, owner=owner)
    await raises(SessionBusy, second.acquire("s"), "acquire while another log holds it")
    await raises(SessionBusy, second.delete("s"), "delete while another log holds it")
    await raises(StaleWriter, second.append("s", [b"x"], 1, owner=owner), "append with another log's token")
    await second.release("s", owner)
    same(await first.append("s", [b"b"], 1, owner=owner), 1, "append by the owner")
    await first.release("s", owner)
    same(await second.read("s"), [b"a", b"b"], "read")


async def the_next_owner_goes_on_where_the_last_one_ended(open_log: OpenLog) -> None:
    first, second = open_log(), open_log()
    await write(first, "s", [b"0"], [b"1", b"2"])
    await write(second, "s", [b"3"])
    owner = await first.acquire("s")
    await raises(StaleWriter, first.append("s", [b"x"], 3, owner=owner), "append where this log had left it")
    same(await first.append("s", [b"4"], 4, owner=owner), 4, "append where the session ends")
    same(await open_log().read("s"), [b"0", b"1", b"2", b"3", b"4"], "read")


async def a_live_session_is_read_by_whole_batches(open_log: OpenLog) -> None:
    batches = [[b"%d.%d" % (turn, part) for part in range(5)] for turn in range(60)]
    everything = [record for batch in batches for record in batch]
    writing = asyncio.create_task(asyncio.to_thread(asyncio.run, settled(write(open_log(), "s", *batches))))
    reader, before = open_log(), 0
    while not writing.done():
        found = await reader.read("s")
        same((found, len(found) % 5), (everything[: len(found)], 0), "whole batches from the beginning")
        same(len(found) >= before, True, "it only grows")
        before = len(found)
        await asyncio.sleep(0)  # a log need not wait for anything
    await writing
    same(await reader.read("s"), everything, "read at the end")


async def a_deleted_session_is_gone_for_all_logs(open_log: OpenLog) -> None:
    first, second = open_log(), open_log()
    await write(first, "s", [b"old"], [b"older"])
    ref = await first.put_blob("s", b"data")
    await second.delete("s")
    same((await first.sessions(), await first.read("s"), await first.latest_seq("s")), ([], [], -1), "the session")
    await raises(SessionError, first.get_blob(ref), "its blob")
    await write(first, "s", [b"new"])
    same(await second.read("s"), [b"new"], "a new session of the same id")


async def several_may_begin_on_a_new_store_at_once(open_log: OpenLog) -> None:
    names = [f"s{number}" for number in range(8)]
    await asyncio.to_thread(run_in_threads, [write(open_log(), name, [b"1"], [b"2"]) for name in names])
    log = open_log()
    same(sorted(await log.sessions()), names, "sessions")
    same([await log.read(name) for name in names], [[b"1", b"2"]] * len(names), "what each wrote")


CHECKS: tuple[Stored, ...] = (
    another_log_finds_what_one_has_written,
    the_order_of_sessions_is_that_of_the_store,
    one_owner_over_all_logs,
    the_next_owner_goes_on_where_the_last_one_ended,
    a_live_session_is_read_by_whole_batches,
    a_deleted_session_is_gone_for_all_logs,
    several_may_begin_on_a_new_store_at_once,
)
