"""One owner at a time, and only the owner appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import SessionBusy, StaleWriter
from deepstrike.testing.trying import raises, same

if TYPE_CHECKING:
    from deepstrike.sessions.base import SessionLog
    from deepstrike.testing.log_conformance.checks import Checked


async def one_owner_at_a_time(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await raises(SessionBusy, log.acquire("s"), "acquire while it is held")
    other = await log.acquire("t")
    await log.release("s", owner)
    again = await log.acquire("s")
    same(len({owner, other, again}), 3, "different tokens")


async def releasing_twice_or_with_another_token_does_nothing(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await log.release("s", "somebody else")
    await raises(SessionBusy, log.acquire("s"), "acquire after a foreign release")
    await log.release("s", owner)
    await log.release("s", owner)
    again = await log.acquire("s")
    await log.release("s", owner)
    await raises(SessionBusy, log.acquire("s"), "acquire after a late release of the owner before")
    await log.release("never acquired", again)


async def only_the_owner_appends(log: SessionLog) -> None:
    await raises(StaleWriter, log.append("s", [b"x"], 0, owner="nobody"), "append without acquire")
    first = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=first)
    await log.release("s", first)
    await raises(StaleWriter, log.append("s", [b"x"], 1, owner=first), "append after release")
    second = await log.acquire("s")
    await raises(StaleWriter, log.append("s", [b"x"], 1, owner=first), "append by the owner before")
    await log.append("s", [b"b"], 1, owner=second)
    same(await log.read("s"), [b"a", b"b"], "read")


async def reading_needs_no_owner(log: SessionLog) -> None:
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    same(await log.read("s"), [b"a"], "read while a run is live")
    same(await log.latest_seq("s"), 0, "latest_seq while a run is live")


CHECKS: tuple[Checked, ...] = (
    one_owner_at_a_time,
    releasing_twice_or_with_another_token_does_nothing,
    only_the_owner_appends,
    reading_needs_no_owner,
)
