"""Whose sub-agent a session is, as its log says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.host.folding import asked
from deepstrike.kernel import decode_record
from deepstrike.wire.event import Started

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.agents import Parent


_CHILD = re.compile(r"/\d+$")


def parent_in(records: Iterable[bytes]) -> Parent | None:
    """Whose sub-agent the session of these records is; None for a root, and where there are no records."""
    for line in records:
        event = decode_record(line).event
        if isinstance(event, Started):
            return event.config.agents.parent
    return None


async def require_own(session_id: str, log: SessionLog, parent: Parent | None) -> None:
    """See that a session is that of this sub-agent, of a root with None. Nothing is asked of one without records.

    Other names than a sub-agent can have are not looked at. Raises `ConfigError`.
    """
    if _CHILD.search(session_id) is None or (
        parent is not None and await asked(session_id, log.latest_seq(session_id)) < 0
    ):
        return
    records = await asked(session_id, log.read(session_id))
    found = parent_in(records)
    if not records or found == parent:
        return
    if found is None:
        raise ConfigError(f"session {session_id!r} is there already and is not that of this sub-agent; rename it")
    raise ConfigError(
        f"session {session_id!r} is that of a sub-agent of {found.session!r}: go on with that one, which goes on with "
        "its sub-agents"
    )
