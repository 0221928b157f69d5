"""Gemini's reasons to stop, in ours. Source: the vendor's reference of `FinishReason` and `BlockReason`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import BadRequest, ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable

_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
# The answer or the prompt was stopped for what it says.
_FILTERED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "PROHIBITED_CONTENT",
        "SPII",
        "BLOCKLIST",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
    }
)
# The model wrote what its service could not read: another try may do better.
_SPOILT = frozenset(
    {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"}
)


def finish_of(reason: str) -> str:
    """Our word for a finish reason that is no failure. `STOP` also ends a reply with calls: see who asks."""
    return "content_filter" if reason in _FILTERED else _FINISH.get(reason, "other")


def failure_of(reason: str, message: str | None, mask: Callable[[str], str]) -> ProviderError | None:
    """The error that a finish reason stands for, if it stands for one."""
    said = f"{reason}: {mask(message)}" if message else reason
    if reason in _SPOILT:
        return ProviderError(
            f"the model's answer could not be used ({said}); ask again", code="bad_answer", retryable=True
        )
    if reason == "MISSING_THOUGHT_SIGNATURE":
        return BadRequest(f"the history lacks a thought signature ({said}); start a new session")
    return None
