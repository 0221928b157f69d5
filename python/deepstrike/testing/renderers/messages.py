"""Anthropic's messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.testing.renderers.base import Rendered, compact, pieces, sse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deepstrike.testing.renderers.base import Spoken, Trouble
    from deepstrike.wire.message import Usage

_REFUSALS: dict[Trouble, tuple[int, str]] = {
    "rate_limited": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "failing": (500, "api_error"),
    "unauthorized": (401, "authentication_error"),
    "quota_exhausted": (402, "billing_error"),
}
_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


@dataclass(frozen=True, slots=True)
class MessagesRenderer:
    """One block after the other; thinking is signed."""

    content_type: str = "text/event-stream"
    counts: frozenset[str] = frozenset({"input", "output", "cached", "cache_write", "reasoning"})
    comment: bytes | None = b": keep-alive\n\n"

    def answer(self, spoken: Spoken) -> Rendered:
        """See `Renderer.answer`."""
        begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        opening = [_event("message_start", message={**begun, "usage": _counts(spoken.usage, 1)})]
        for index, (block, deltas) in enumerate(_blocks(spoken)):
            opening.append(_event("content_block_start", index=index, content_block=block))
            opening += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
            opening.append(_event("content_block_stop", index=index))
        stop = {"stop_reason": _STOPS[spoken.finish], "stop_sequence": None}
        told = _event("message_delta", delta=stop, usage=_counts(spoken.usage, spoken.usage.output))
        return Rendered(tuple(opening), (told, _event("message_stop")))

    def failure(self, message: str) -> bytes:
        """See `Renderer.failure`."""
        return _event("error", error={"type": "api_error", "message": message})

    def refusal(self, trouble: Trouble, message: str) -> tuple[int, bytes] | None:
        """See `Renderer.refusal`."""
        status, kind = _REFUSALS[trouble]
        return status, compact({"type": "error", "error": {"type": kind, "message": message}})


def _event(kind: str, **fields: object) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _blocks(spoken: Spoken) -> Iterator[tuple[Mapping[str, object], list[Mapping[str, object]]]]:
    """Each block as it opens, and what is added to it."""
    if spoken.thinking:
        signature = {"type": "signature_delta", "signature": "c2lnbmVk"}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(spoken.thinking)]
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if spoken.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(spoken.text)]
    for call in spoken.calls:
        opened: Mapping[str, object] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield opened, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.arguments_text)]


def _counts(usage: Usage, output: int) -> dict[str, object]:
    """What was cached is not part of this service's input."""
    return {
        "input_tokens": usage.input - usage.cached - usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


MESSAGES = MessagesRenderer()
