"""The conformance suite finds the faults that logs have had."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.testing.log_conformance import check_session_log

if TYPE_CHECKING:
    from collections.abc import Sequence


class IgnoresTheExpectedSeq(InMemorySessionLog):
    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        return await super().append(session_id, records, await self.latest_seq(session_id) + 1, owner=owner)


class AsksForNoOwner(InMemorySessionLog):
    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        return await super().append(session_id, records, expected_seq, owner=self._owners.get(session_id, owner))


class WritesRecordsOneByOne(InMemorySessionLog):
    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        for at, record in enumerate(records, expected_seq):
            await super().append(session_id, [record], at, owner=owner)
            await asyncio.sleep(0.001)  # a slow disk: other threads get their turn
        return expected_seq + len(records) - 1


class LetsEverybodyIn(InMemorySessionLog):
    async def acquire(self, session_id: str) -> str:
        self._owners.pop(session_id, None)
        return await super().acquire(session_id)


class KeepsWhatACancelledAcquireTook(InMemorySessionLog):
    async def acquire(self, session_id: str) -> str:
        owner = await super().acquire(session_id)
        await asyncio.sleep(0)  # it is told to a server
        return owner


class StripsNewlines(InMemorySessionLog):
    async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
        return [record.rstrip(b"\n") for record in await super().read(session_id, from_seq)]


class CutsLongIds(InMemorySessionLog):
    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        self._owners[session_id[:255]] = owner
        return await super().append(session_id[:255], records, expected_seq, owner=owner)


class SharesBlobsBetweenSessions(InMemorySessionLog):
    async def put_blob(self, session_id: str, data: bytes) -> str:
        return await super().put_blob("", data)


class SortsItsSessions(InMemorySessionLog):
    async def sessions(self) -> list[str]:
        return sorted(await super().sessions())


@pytest.mark.parametrize(
    ("broken", "found_by"),
    [
        (
            IgnoresTheExpectedSeq,
            ["a_batch_at_another_seq_is_refused_and_leaves_nothing", "the_losers_of_a_race_get_stale_writer"],
        ),
        (AsksForNoOwner, ["only_the_owner_appends"]),
        (
            WritesRecordsOneByOne,
            [
                "threads_with_loops_of_their_own_never_mix_batches",
                "a_cancelled_append_leaves_its_batch_whole_or_absent",
            ],
        ),
        (LetsEverybodyIn, ["one_owner_at_a_time", "one_thread_of_many_becomes_the_owner"]),
        (KeepsWhatACancelledAcquireTook, ["a_cancelled_acquire_leaves_the_session_free"]),
        (StripsNewlines, ["bytes_in_are_bytes_out"]),
        (CutsLongIds, ["session_ids_are_any_text"]),
        (SharesBlobsBetweenSessions, ["delete_removes_records_and_blobs"]),
        (SortsItsSessions, ["sessions_stand_in_order_of_their_first_append"]),
    ],
)
async def test_given_a_broken_log_when_checked_then_the_checks_that_found_it_are_named(
    broken: type[InMemorySessionLog], found_by: list[str]
) -> None:
    async def make() -> InMemorySessionLog:
        return broken()

    with pytest.raises(AssertionError) as found:
        await check_session_log(make)
    named = re.findall(r"^  (\w+): ", str(found.value), re.MULTILINE)
    assert set(found_by) <= set(named)
