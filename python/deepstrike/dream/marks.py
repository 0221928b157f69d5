"""How a session says that it was dreamed of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deepstrike.memory.curation import digest

if TYPE_CHECKING:
    from deepstrike.memory.base import SessionData

MARK: Final = "dreamed"
_AT: Final = "dreamed_at_ms"
_HASH: Final = "dreamed_hash"


def is_dreamed(session: SessionData) -> bool:
    """Whether it was dreamed of as it stands: one that has gone on since was not."""
    if not session.metadata.get(MARK):
        return False
    marked = session.metadata.get(_HASH)
    return marked is None or marked == _hash(session)


def dreamed(session: SessionData, now_ms: int) -> SessionData:
    """The session with its mark; all else stays as it is."""
    mark = {MARK: True, _AT: now_ms, _HASH: _hash(session)}
    return replace(session, metadata={**session.metadata, **mark})


def _hash(session: SessionData) -> str:
    return digest(json.dumps(list(map(dict, session.messages)), sort_keys=True, default=str))
