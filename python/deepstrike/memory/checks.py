"""Whether what a store is given, or gives, is of the documented form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deepstrike.memory.base import MemoryEntry, SessionData

_LARGEST: Final = 2**63 - 1


def is_entry(value: object) -> bool:
    """Whether it is a `MemoryEntry` with a text and a mapping."""
    return isinstance(value, MemoryEntry) and isinstance(value.text, str) and isinstance(value.metadata, Mapping)


def wrong_in(value: object) -> str | None:
    """What of a `SessionData` is not as documented; None where all is."""
    if not isinstance(value, SessionData):
        return f"a session is a SessionData(…), not a {type(value).__name__}"
    for name in ("session_id", "agent_id"):
        if not isinstance(getattr(value, name), str):
            return f"the {name} of a SessionData must be a text, not {getattr(value, name)!r:.80}"
    messages: object = value.messages
    if not isinstance(messages, list | tuple) or not all(isinstance(message, Mapping) for message in messages):
        return f"the messages of session {value.session_id!r:.80} must be a list of mappings"
    metadata: object = value.metadata
    if not isinstance(metadata, Mapping):
        return f"the metadata of session {value.session_id!r:.80} must be a mapping"
    for name in ("created_at_ms", "updated_at_ms"):
        at = getattr(value, name)
        if isinstance(at, bool) or not isinstance(at, int) or abs(at) > _LARGEST:
            return f"the {name} of session {value.session_id!r:.80} must be milliseconds since 1970, not {at!r:.80}"
    return None


def require_session(value: object) -> None:
    """Raises `TypeError` for what is no `SessionData` as documented."""
    wrong = wrong_in(value)
    if wrong is not None:
        raise TypeError(wrong)
