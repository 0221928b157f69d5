"""The words of a session's messages, and who said them.

The index of a store is built from these, and taken apart by them: when they change, so must the version of its layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepstrike.memory.base import MemoryEntry
from deepstrike.memory.curation import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTSIDE: Final = "outside"
"""The field of a message with the words that the agent had read before it: of signals, look-ups, failed calls,
feedback, cut ends of results.

They are nobody's turn: neither found nor shown, but what is drawn from them is not taken for the user's.
"""
_OUTSIDE: Final = ("tool", "function")
_ROLES: Final = ("user", "assistant", "system", "developer", *_OUTSIDE)


def words_of(message: Mapping[str, object]) -> str:
    """The text of a message: its `content`, or that of its parts, one below the other."""
    content = message.get("content", message.get("text"))
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "\n".join(text for part in content if (text := _words_of_part(part)))
    return ""


def speaker_of(message: Mapping[str, object]) -> str:
    """The name of who said it; empty where only a role of the protocol is known."""
    for field in ("name", "role"):
        value = message.get(field)
        if isinstance(value, str) and value.lower() not in _ROLES and message.get("role") not in _OUTSIDE:
            return value
    return ""


def role_of(message: Mapping[str, object]) -> str:
    """The role, `user` where there is none."""
    role = message.get("role")
    return role if isinstance(role, str) else "user"


def is_trusted(message: Mapping[str, object]) -> bool:
    """Whether the words are the user's or the agent's own: not those of a tool, and not marked as untrusted."""
    return role_of(message) not in _OUTSIDE and message.get("trust") != "untrusted"


def outside_of(message: Mapping[str, object]) -> list[str]:
    """The words in the message's `outside`, none where it has none."""
    words = message.get(OUTSIDE)
    return [word for word in words if isinstance(word, str)] if isinstance(words, list | tuple) else []


def turn_entry(message: Mapping[str, object], session_id: str, place: int, updated: int, score: float) -> MemoryEntry:
    """A turn as `search` gives it, with its own words exactly as they were said."""
    text = words_of(message)
    metadata: dict[str, object] = {
        "kind": "turn",
        "session_id": session_id,
        "record": place,
        "hash": digest(text),
        "observed_at_ms": updated,
        "role": role_of(message),
    }
    if speaker := speaker_of(message):
        metadata["name"] = speaker
    if not is_trusted(message):
        metadata["trust"] = "untrusted"
    return MemoryEntry(text, score, metadata)


def _words_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""
