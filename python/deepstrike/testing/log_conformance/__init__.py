"""What every session log must hold, as checks that run on any `SessionLog`.

    @pytest.mark.parametrize("check", LOG_CHECKS, ids=str)
    async def test_my_log(check: LogCheck) -> None:
        await check.run(make_my_log)

or all at once: `await check_session_log(make_my_log)`. A log that outlives the object that wrote it has more to hold:
see `DURABLE_CHECKS` and `check_durable_log`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from deepstrike.testing.log_conformance import kept, owners, races, records, stores
from deepstrike.testing.log_conformance.checks import DurableCheck, LogCheck, MakeLog, MakeStore
from deepstrike.testing.trying import require_all

if TYPE_CHECKING:
    from deepstrike.sessions.base import SessionLog

LOG_CHECKS: list[LogCheck] = [
    LogCheck(body.__name__, body) for body in (*records.CHECKS, *owners.CHECKS, *kept.CHECKS, *races.CHECKS)
]
"""All checks, in the order of the protocol."""

DURABLE_CHECKS: list[DurableCheck] = [DurableCheck(body.__name__, body) for body in stores.CHECKS]
"""What two logs on one store must hold, beside what `LOG_CHECKS` asks of one."""

__all__ = [
    "DURABLE_CHECKS",
    "LOG_CHECKS",
    "DurableCheck",
    "LogCheck",
    "MakeLog",
    "MakeStore",
    "check_durable_log",
    "check_session_log",
]


async def check_session_log(make: MakeLog) -> None:
    """Run every check, each on a log of its own. Raises one `AssertionError` that lists all that failed."""
    await require_all((check.name, check.run(make)) for check in LOG_CHECKS)


async def check_durable_log(make: MakeStore) -> None:
    """Run every check, those of `LOG_CHECKS` too. Raises one `AssertionError` that lists all that failed."""

    async def make_log() -> SessionLog:
        return (await make())()

    one = ((check.name, check.run(make_log)) for check in LOG_CHECKS)
    two = ((check.name, check.run(make)) for check in DURABLE_CHECKS)
    await require_all(chain(one, two))
