"""Google's Gemini."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.testing.renderers.base import Rendered, compact, pieces, sse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deepstrike.testing.renderers.base import Spoken, Trouble
    from deepstrike.wire.message import Usage

_REFUSALS: dict[Trouble, tuple[int, str]] = {
    "rate_limited": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "failing": (500, "INTERNAL"),
    "unauthorized": (400, "INVALID_ARGUMENT"),
    "quota_exhausted": (429, "RESOURCE_EXHAUSTED"),
}
_DETAILS: dict[Trouble, dict[str, object]] = {
    "unauthorized": {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
    "quota_exhausted": {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
    },
}
_STOPS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}


@dataclass(frozen=True, slots=True)
class GeminiRenderer:
    """One part an event, with the line ends of this service; calls come whole, the first one signed."""

    content_type: str = "text/event-stream"
    counts: frozenset[str] = frozenset({"input", "output", "cached", "reasoning"})
    comment: bytes | None = b": keep-alive\r\n\r\n"

    def answer(self, spoken: Spoken) -> Rendered:
        """See `Renderer.answer`."""
        opening = tuple(_event({"content": {"role": "model", "parts": [part]}}) for part in _parts(spoken))
        last = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": _STOPS[spoken.finish]}
        return Rendered(opening, (_event(last, usageMetadata=_counts(spoken.usage)),))

    def failure(self, message: str) -> bytes:
        """See `Renderer.failure`."""
        return _crlf(sse({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}))

    def refusal(self, trouble: Trouble, message: str) -> tuple[int, bytes] | None:
        """See `Renderer.refusal`."""
        status, word = _REFUSALS[trouble]
        details = [_DETAILS[trouble]] if trouble in _DETAILS else []
        return status, compact({"error": {"code": status, "message": message, "status": word, "details": details}})


def _crlf(event: bytes) -> bytes:
    return event.replace(b"\n", b"\r\n")


def _event(candidate: Mapping[str, object], **more: object) -> bytes:
    return _crlf(sse({"candidates": [{**candidate, "index": 0}], **more, "modelVersion": "scripted"}))


def _parts(spoken: Spoken) -> Iterator[Mapping[str, object]]:
    yield from ({"text": piece, "thought": True} for piece in pieces(spoken.thinking))
    yield from ({"text": piece} for piece in pieces(spoken.text))
    for number, call in enumerate(spoken.calls):
        part: dict[str, object] = {
            "functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments_text)}
        }
        yield part if number else {**part, "thoughtSignature": "c2lnbmVk"}


def _counts(usage: Usage) -> dict[str, object]:
    """Thoughts are not part of this service's output."""
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
    }


GEMINI = GeminiRenderer()
