"""What every session log must hold, as checks that run on any `SessionLog`.

    @pytest.mark.parametrize("check", LOG_CHECKS, ids=str)
    async def test_my_log(check: LogCheck) -> None:
        await check.run(make_my_log)

or all at once: `await check_session_log(make_my_log)`. A log that outlives the object that wrote it has more to hold:
see `DURABLE_CHECKS` and `check_durable_log`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from threading import Thread

from deepstrike.errors import DeepStrikeError, SessionBusy, SessionError, StaleWriter, UnknownSession
from deepstrike.sessions.base import SessionLog

MakeLog = Callable[[], Awaitable[SessionLog]]
"""Gives a new, empty log each time it is called."""

MakeStore = Callable[[], Awaitable[Callable[[], SessionLog]]]
"""Makes a new, empty store each time it is called, and gives what opens a log on that store, any number of times."""

_Stored = Callable[[Callable[[], SessionLog]], Awaitable[None]]
_Checked = Callable[[SessionLog], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LogCheck:
    """One promise of `SessionLog`; `name` says it."""

    name: str
    _body: _Checked

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakeLog) -> None:
        """Run the check on a log from `make`. Raises `AssertionError` with what was found instead."""
        await self._body(await make())


LOG_CHECKS: list[LogCheck] = []
"""All checks, in the order of the protocol."""


@dataclass(frozen=True, slots=True)
class DurableCheck:
    """One promise of a log that outlives the object that wrote it; `name` says it."""

    name: str
    _body: _Stored

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakeStore) -> None:
        """Run the check on a store from `make`. Raises `AssertionError` with what was found instead."""
        await self._body(await make())


DURABLE_CHECKS: list[DurableCheck] = []
"""What two logs on one store must hold, beside what `LOG_CHECKS` asks of one."""


async def check_session_log(make: MakeLog) -> None:
    """Run every check, each on a log of its own. Raises one `AssertionError` that lists all that failed."""
    _require_none([await _outcome(check.name, check.run(make)) for check in LOG_CHECKS])


async def check_durable_log(make: MakeStore) -> None:
    """Run every check, those of `LOG_CHECKS` too. Raises one `AssertionError` that lists all that failed."""

    async def make_log() -> SessionLog:
        return (await make())()

    outcomes = [await _outcome(check.name, check.run(make_log)) for check in LOG_CHECKS]
    _require_none(outcomes + [await _outcome(check.name, check.run(make)) for check in DURABLE_CHECKS])


async def _outcome(name: str, attempt: Awaitable[None]) -> str | None:
    try:
        await attempt
    except Exception as error:
        return f"{name}: {error!r}"
    return None


def _require_none(outcomes: Sequence[str | None]) -> None:
    failed = [outcome for outcome in outcomes if outcome is not None]
    if failed:
        raise AssertionError(f"{len(failed)} of {len(outcomes)} checks failed\n  " + "\n  ".join(failed))


def _check(body: _Checked) -> _Checked:
    LOG_CHECKS.append(LogCheck(body.__name__.strip("_"), body))
    return body


def _durable(body: _Stored) -> _Stored:
    DURABLE_CHECKS.append(DurableCheck(body.__name__.strip("_"), body))
    return body


def _same(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")


async def _raises(kind: type[DeepStrikeError], attempt: Awaitable[object], what: str) -> None:
    try:
        found = await attempt
    except kind:
        return
    raise AssertionError(f"{what}: no {kind.__name__} was raised, it returned {found!r}")


async def _write(log: SessionLog, session_id: str, *batches: Sequence[bytes]) -> None:
    """Append each batch at the end of the session and give the session back."""
    owner = await log.acquire(session_id)
    try:
        for batch in batches:
            await log.append(session_id, batch, await log.latest_seq(session_id) + 1, owner=owner)
    finally:
        await log.release(session_id, owner)


# ---- records


@_check
async def _a_new_session_is_empty(log: SessionLog) -> None:
    _same(await log.read("new"), [], "read")
    _same(await log.latest_seq("new"), -1, "latest_seq")
    _same(await log.sessions(), [], "sessions")


@_check
async def _append_returns_the_seq_of_the_last_record(log: SessionLog) -> None:
    owner = await log.acquire("s")
    _same(await log.append("s", [b"a"], 0, owner=owner), 0, "one record")
    _same(await log.append("s", [b"b", b"c", b"d"], 1, owner=owner), 3, "three more")
    _same(await log.latest_seq("s"), 3, "latest_seq")


@_check
async def _read_gives_the_records_from_a_seq_on(log: SessionLog) -> None:
    await _write(log, "s", [b"0"], [b"1", b"2"], [b"3"])
    for first in range(6):
        _same(await log.read("s", first), [b"0", b"1", b"2", b"3"][first:], f"read from {first}")


@_check
async def _bytes_in_are_bytes_out(log: SessionLog) -> None:
    records = [b"", b"\n", b"\r\n", b"\0", b'{"a":"\\n"}\n', bytes(range(256)), b"\xff" * 1000, b"x" * 300_000]
    await _write(log, "s", records, [b"last"])
    _same(await log.read("s"), [*records, b"last"], "read")


@_check
async def _an_empty_batch_writes_nothing(log: SessionLog) -> None:
    owner = await log.acquire("s")
    _same(await log.append("s", [], 0, owner=owner), -1, "append to an empty session")
    _same(await log.sessions(), [], "sessions")
    await log.append("s", [b"a"], 0, owner=owner)
    _same(await log.append("s", [], 1, owner=owner), 0, "append behind a record")


@_check
async def _a_batch_at_another_seq_is_refused_and_leaves_nothing(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await _raises(StaleWriter, log.append("s", [b"x"], 1, owner=owner), "a gap on an empty session")
    await log.append("s", [b"a", b"b"], 0, owner=owner)
    for wrong in (0, 1, 3):
        await _raises(StaleWriter, log.append("s", [b"x", b"y"], wrong, owner=owner), f"append at {wrong}")
    _same(await log.read("s"), [b"a", b"b"], "read")
    _same(await log.append("s", [b"c"], 2, owner=owner), 2, "append at the right seq")


@_check
async def _a_list_that_is_changed_later_does_not_change_the_log(log: SessionLog) -> None:
    batch = [b"a", b"b"]
    await _write(log, "s", batch)
    batch[0] = b"changed"
    (await log.read("s")).append(b"more")
    _same(await log.read("s"), [b"a", b"b"], "read")


@_check
async def _a_long_session_keeps_every_record(log: SessionLog) -> None:
    records = [f"record {seq}".encode() for seq in range(2000)]
    await _write(log, "s", *(records[first : first + 7] for first in range(0, len(records), 7)))
    _same(await log.read("s"), records, "read")
    _same(await log.read("s", 1995), records[1995:], "read from 1995")


# ---- owners


@_check
async def _one_owner_at_a_time(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await _raises(SessionBusy, log.acquire("s"), "acquire while it is held")
    other = await log.acquire("t")
    await log.release("s", owner)
    again = await log.acquire("s")
    _same(len({owner, other, again}), 3, "different tokens")


@_check
async def _releasing_twice_or_with_another_token_does_nothing(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await log.release("s", "somebody else")
    await _raises(SessionBusy, log.acquire("s"), "acquire after a foreign release")
    await log.release("s", owner)
    await log.release("s", owner)
    again = await log.acquire("s")
    await log.release("s", owner)
    await _raises(SessionBusy, log.acquire("s"), "acquire after a late release of the owner before")
    await log.release("never acquired", again)


@_check
async def _only_the_owner_appends(log: SessionLog) -> None:
    await _raises(StaleWriter, log.append("s", [b"x"], 0, owner="nobody"), "append without acquire")
    first = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=first)
    await log.release("s", first)
    await _raises(StaleWriter, log.append("s", [b"x"], 1, owner=first), "append after release")
    second = await log.acquire("s")
    await _raises(StaleWriter, log.append("s", [b"x"], 1, owner=first), "append by the owner before")
    await log.append("s", [b"b"], 1, owner=second)
    _same(await log.read("s"), [b"a", b"b"], "read")


@_check
async def _reading_needs_no_owner(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    _same(await log.read("s"), [b"a"], "read while a run is live")
    _same(await log.latest_seq("s"), 0, "latest_seq while a run is live")


# ---- sessions


@_check
async def _sessions_stand_in_order_of_their_first_append(log: SessionLog) -> None:
    for session_id in ("zebra", "ant", "bee"):
        await _write(log, session_id, [b"1"])
    await _write(log, "ant", [b"2"])
    held = await log.acquire("only acquired")
    _same(await log.sessions(), ["zebra", "ant", "bee"], "sessions")
    await log.release("only acquired", held)


@_check
async def _delete_removes_records_and_blobs(log: SessionLog) -> None:
    await _write(log, "s", [b"a"])
    await _write(log, "t", [b"a"])
    gone, kept = await log.put_blob("s", b"data"), await log.put_blob("t", b"data")
    await log.delete("s")
    _same(await log.sessions(), ["t"], "sessions")
    _same((await log.read("s"), await log.latest_seq("s")), ([], -1), "the deleted session")
    await _raises(SessionError, log.get_blob(gone), "its blob")
    _same(await log.get_blob(kept), b"data", "the same bytes in another session")
    await _write(log, "s", [b"new"])
    _same(await log.read("s"), [b"new"], "a new session of the same id")
    _same(await log.sessions(), ["t", "s"], "sessions after it")


@_check
async def _delete_refuses_a_live_and_an_unknown_session(log: SessionLog) -> None:
    await _raises(UnknownSession, log.delete("s"), "delete of what never was")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    await _raises(SessionBusy, log.delete("s"), "delete while a run is live")
    _same(await log.read("s"), [b"a"], "read after it")
    await log.release("s", owner)
    await log.delete("s")
    await _raises(UnknownSession, log.delete("s"), "delete twice")


@_check
async def _session_ids_are_any_text(log: SessionLog) -> None:
    ids = ["", " ", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "NUL", "a\0b", "a\nb", "A", "a", "é", "e\u0301"]
    ids += ["日本語", "😀", "'; --", "%", "*", "?", "x" * 5_000, "y" * 5_000 + "1", "y" * 5_000 + "2"]
    for session_id in ids:
        await _write(log, session_id, [session_id.encode(), b"end"])
    _same(await log.sessions(), ids, "sessions")
    for session_id in ids:
        _same(await log.read(session_id), [session_id.encode(), b"end"], f"read of {session_id[:20]!r}")
        _same(await log.get_blob(await log.put_blob(session_id, b"blob")), b"blob", f"blob of {session_id[:20]!r}")
        await log.delete(session_id)
    _same(await log.sessions(), [], "sessions after deleting them all")


# ---- blobs


@_check
async def _blobs_are_read_in_parts(log: SessionLog) -> None:
    data = bytes(range(256)) * 400
    ref = await log.put_blob("s", data)
    _same(await log.get_blob(ref), data, "the whole")
    for offset, length in ((0, 10), (5, 0), (100, 1000), (len(data) - 3, 10), (len(data), 5), (len(data) + 9, None)):
        end = None if length is None else offset + length
        _same(await log.get_blob(ref, offset, length), data[offset:end], f"{length} bytes from {offset}")
    _same(await log.get_blob(ref, 102_390), data[102_390:], "from an offset to the end")


@_check
async def _blobs_are_kept_apart_and_unknown_ones_refused(log: SessionLog) -> None:
    refs = [await log.put_blob("s", data) for data in (b"", b"one", b"two", b"one")]
    _same([await log.get_blob(ref) for ref in refs], [b"", b"one", b"two", b"one"], "the blobs")
    for ref in ("", "unknown", "../../etc/passwd", "\0", "x" * 5_000):
        await _raises(SessionError, log.get_blob(ref), f"get_blob({ref[:20]!r})")
    _same(await log.sessions(), [], "a session that holds blobs alone is not listed")


@_check
async def _blobs_may_be_large_and_are_kept_once(log: SessionLog) -> None:
    data = bytes(range(256)) * 20_000
    ref = await log.put_blob("s", data)
    _same(await log.put_blob("s", data), ref, "the reference of the same bytes")
    _same(await log.get_blob(ref) == data, True, "the bytes of a blob of 5 MB")
    _same(await log.get_blob(ref, 5_000_000, 3), data[5_000_000:5_000_003], "a part of it")
    await _raises(UnknownSession, log.delete("t"), "delete of a session that holds nothing")
    await log.delete("s")
    await _raises(SessionError, log.get_blob(ref), "a blob of a session that held blobs alone")


# ---- many writers


@_check
async def _the_losers_of_a_race_get_stale_writer(log: SessionLog) -> None:
    owner = await log.acquire("s")
    results = await asyncio.gather(
        *(log.append("s", [f"{writer}".encode()] * 3, 0, owner=owner) for writer in range(8)), return_exceptions=True
    )
    _same([result for result in results if isinstance(result, int)], [2], "one winner")
    _same(sum(isinstance(result, StaleWriter) for result in results), 7, "losers")
    records = await log.read("s")
    _same((len(records), len(set(records))), (3, 1), "the winner's batch alone")


@_check
async def _threads_with_loops_of_their_own_never_mix_batches(log: SessionLog) -> None:
    owner = await log.acquire("s")

    async def write(name: int) -> None:
        turn = refused = 0
        while turn < 25:
            batch = [f"{name}.{turn}.{part}".encode() for part in range(3)]
            try:
                await log.append("s", batch, await log.latest_seq("s") + 1, owner=owner)
                turn += 1
            except StaleWriter:  # another batch came first, and there are 7 × 25 of others
                refused += 1
                _same(refused <= 175, True, f"writer {name} is refused only when another batch was written")

    await asyncio.to_thread(_run_in_threads, [write(name) for name in range(8)])
    records = await log.read("s")
    batches = [records[first : first + 3] for first in range(0, len(records), 3)]
    wanted = [[f"{name}.{turn}.{part}".encode() for part in range(3)] for name in range(8) for turn in range(25)]
    _same(sorted(batches), sorted(wanted), "whole batches, each once")
    for name in range(8):
        mine = [batch for batch in batches if batch[0].startswith(b"%d." % name)]
        _same(mine, [batch for batch in wanted if batch[0].startswith(b"%d." % name)], f"the order of writer {name}")


@_check
async def _one_thread_of_many_becomes_the_owner(log: SessionLog) -> None:
    tokens: list[str] = []

    async def claim() -> None:
        try:
            tokens.append(await log.acquire("s"))
        except SessionBusy:
            return

    await asyncio.to_thread(_run_in_threads, [claim() for _ in range(8)])
    _same(len(tokens), 1, "owners")


@_check
async def _a_cancelled_append_leaves_its_batch_whole_or_absent(log: SessionLog) -> None:
    owner = await log.acquire("s")
    written: list[bytes] = []
    for steps in range(12):
        batch = [b"%d.%d" % (steps, part) for part in range(5)]
        task = asyncio.ensure_future(log.append("s", batch, len(written), owner=owner))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        found = await log.read("s")
        _same(found in (written, written + batch), True, f"whole or absent, cancelled after {steps} steps")
        written = found
    _same(await log.append("s", [b"end"], len(written), owner=owner), len(written), "append after them")
    _same(await log.read("s"), [*written, b"end"], "read at the end")


# ---- two logs on one store


@_durable
async def _another_log_finds_what_one_has_written(open_log: Callable[[], SessionLog]) -> None:
    first = open_log()
    await _write(first, "zebra", [b"1"], [b"2", b"3"])
    await _write(first, "ant", [b"x" * 300_000])
    refs = [await first.put_blob("zebra", data) for data in (b"", b"blob", b"y" * 3_000_000)]
    again = open_log()
    _same(await again.sessions(), ["zebra", "ant"], "sessions")
    _same(
        [await again.read("zebra", first_seq) for first_seq in range(4)],
        [[b"1", b"2", b"3"][n:] for n in range(4)],
        "read",
    )
    _same((await again.latest_seq("zebra"), await again.latest_seq("ant")), (2, 0), "latest_seq")
    _same([len(await again.get_blob(ref)) for ref in refs], [0, 4, 3_000_000], "the sizes of the blobs")


@_durable
async def _the_order_of_sessions_is_that_of_the_store(open_log: Callable[[], SessionLog]) -> None:
    first, second = open_log(), open_log()
    for log, session_id in ((first, "z"), (second, "b"), (first, "a"), (second, "z"), (second, "c")):
        await _write(log, session_id, [b"1"])
    await first.delete("b")
    await _write(second, "b", [b"1"])
    _same(await first.sessions(), ["z", "a", "c", "b"], "sessions in the one")
    _same(await open_log().sessions(), ["z", "a", "c", "b"], "sessions in a third")


@_durable
async def _one_owner_over_all_logs(open_log: Callable[[], SessionLog]) -> None:
    first, second = open_log(), open_log()
    owner = await first.acquire("s")
    await first.append("s", [b"a"], 0, owner=owner)
    await _raises(SessionBusy, second.acquire("s"), "acquire while another log holds it")
    await _raises(SessionBusy, second.delete("s"), "delete while another log holds it")
    await _raises(StaleWriter, second.append("s", [b"x"], 1, owner=owner), "append with another log's token")
    await second.release("s", owner)
    _same(await first.append("s", [b"b"], 1, owner=owner), 1, "append by the owner")
    await first.release("s", owner)
    _same(await second.read("s"), [b"a", b"b"], "read")


@_durable
async def _the_next_owner_goes_on_where_the_last_one_ended(open_log: Callable[[], SessionLog]) -> None:
    first, second = open_log(), open_log()
    await _write(first, "s", [b"0"], [b"1", b"2"])
    await _write(second, "s", [b"3"])
    owner = await first.acquire("s")
    await _raises(StaleWriter, first.append("s", [b"x"], 3, owner=owner), "append where this log had left it")
    _same(await first.append("s", [b"4"], 4, owner=owner), 4, "append where the session ends")
    _same(await open_log().read("s"), [b"0", b"1", b"2", b"3", b"4"], "read")


@_durable
async def _a_live_session_is_read_by_whole_batches(open_log: Callable[[], SessionLog]) -> None:
    batches = [[b"%d.%d" % (turn, part) for part in range(5)] for turn in range(60)]
    everything = [record for batch in batches for record in batch]
    writing = asyncio.create_task(asyncio.to_thread(asyncio.run, _settled(_write(open_log(), "s", *batches))))
    reader, before = open_log(), 0
    while not writing.done():
        found = await reader.read("s")
        _same((found, len(found) % 5), (everything[: len(found)], 0), "whole batches from the beginning")
        _same(len(found) >= before, True, "it only grows")
        before = len(found)
        await asyncio.sleep(0)  # a log need not wait for anything
    await writing
    _same(await reader.read("s"), everything, "read at the end")


@_durable
async def _a_deleted_session_is_gone_for_all_logs(open_log: Callable[[], SessionLog]) -> None:
    first, second = open_log(), open_log()
    await _write(first, "s", [b"old"], [b"older"])
    ref = await first.put_blob("s", b"data")
    await second.delete("s")
    _same((await first.sessions(), await first.read("s"), await first.latest_seq("s")), ([], [], -1), "the session")
    await _raises(SessionError, first.get_blob(ref), "its blob")
    await _write(first, "s", [b"new"])
    _same(await second.read("s"), [b"new"], "a new session of the same id")


async def _settled(work: Awaitable[None]) -> None:
    await work


def _run_in_threads(jobs: Sequence[Awaitable[None]]) -> None:
    """Run each job in a thread with an event loop of its own; raises the first error."""
    errors: list[BaseException] = []

    def work(job: Awaitable[None]) -> None:
        try:
            asyncio.run(_settled(job))
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
