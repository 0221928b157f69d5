"""OpenAI's Responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.testing.renderers.base import Rendered, pieces, sse
from deepstrike.testing.renderers.chat import CHAT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.testing.renderers.base import Spoken, Trouble
    from deepstrike.wire.message import Usage

_Item = dict[str, object]


@dataclass(frozen=True, slots=True)
class ResponsesRenderer:
    """Item after item, each told when it opens, in pieces, and whole; the end repeats them all."""

    content_type: str = "text/event-stream"
    counts: frozenset[str] = frozenset({"input", "output", "cached", "cache_write", "reasoning"})
    comment: bytes | None = b": keep-alive\n\n"

    def answer(self, spoken: Spoken) -> Rendered:
        """See `Renderer.answer`."""
        opening = [_event("response.created", response=_response("in_progress"))]
        items = list(_items(spoken))
        for index, (item, kind, deltas) in enumerate(items):
            opening.append(_event("response.output_item.added", output_index=index, item=_opened(item)))
            opening += [_event(f"response.{kind}.delta", output_index=index, delta=delta) for delta in deltas]
            opening.append(_event("response.output_item.done", output_index=index, item=item))
        cut = spoken.finish == "length"
        status = "incomplete" if cut else "completed"
        whole = _response(status, output=[item for item, *_ in items], usage=_counts(spoken.usage))
        whole["incomplete_details"] = {"reason": "max_output_tokens"} if cut else None
        return Rendered(tuple(opening), (_event(f"response.{status}", response=whole),))

    def failure(self, message: str) -> bytes:
        """See `Renderer.failure`."""
        return _event("error", code="server_error", message=message, param=None)

    def refusal(self, trouble: Trouble, message: str) -> tuple[int, bytes] | None:
        """See `Renderer.refusal`."""
        return CHAT.refusal(trouble, message)


def _event(kind: str, **fields: object) -> bytes:
    return sse({"type": kind, "sequence_number": 0, **fields}, kind)


def _response(status: str, **more: object) -> _Item:
    return {"id": "resp_1", "object": "response", "status": status, "error": None, **more}


def _items(spoken: Spoken) -> Iterator[tuple[_Item, str, list[str]]]:
    """Each item, the name of its pieces, and these."""
    if spoken.thinking:
        summary = [{"type": "summary_text", "text": spoken.thinking}]
        item: _Item = {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "c2VjcmV0"}
        yield item, "reasoning_summary_text", pieces(spoken.thinking)
    if spoken.text:
        content = [{"type": "output_text", "text": spoken.text, "annotations": []}]
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        yield item, "output_text", pieces(spoken.text)
    for number, call in enumerate(spoken.calls):
        item = {"id": f"fc_{number}", "type": "function_call", "status": "completed", "call_id": call.id}
        item |= {"name": call.name, "arguments": call.arguments_text}
        yield item, "function_call_arguments", pieces(call.arguments_text)


def _opened(item: _Item) -> _Item:
    empty = {"content": [], "summary": [], "arguments": ""}
    return {**item, **{name: value for name, value in empty.items() if name in item}}


def _counts(usage: Usage) -> _Item:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


RESPONSES = ResponsesRenderer()
