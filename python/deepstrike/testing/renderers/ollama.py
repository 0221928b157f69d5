"""Ollama's lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.testing.renderers.base import Rendered, compact, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deepstrike.testing.renderers.base import Spoken, Trouble

_STATUSES: dict[Trouble, int] = {"rate_limited": 429, "overloaded": 503, "failing": 500, "unauthorized": 401}


@dataclass(frozen=True, slots=True)
class OllamaRenderer:
    """One object a line; calls come whole, and the last line has the counts."""

    content_type: str = "application/x-ndjson"
    counts: frozenset[str] = frozenset({"input", "output"})
    comment: bytes | None = b"\n"

    def answer(self, spoken: Spoken) -> Rendered:
        """See `Renderer.answer`."""
        opening = tuple(_line({"message": {"role": "assistant", **said}, "done": False}) for said in _says(spoken))
        reason = "length" if spoken.finish == "length" else "stop"
        last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
        counts = {"prompt_eval_count": spoken.usage.input, "eval_count": spoken.usage.output}
        return Rendered(opening, (_line({**last, **counts}),))

    def failure(self, message: str) -> bytes:
        """See `Renderer.failure`."""
        return _line({"error": message})

    def refusal(self, trouble: Trouble, message: str) -> tuple[int, bytes] | None:
        """See `Renderer.refusal`. A server of one's own knows no quota."""
        status = _STATUSES.get(trouble)
        return None if status is None else (status, compact({"error": message}))


def _line(fields: dict[str, object]) -> bytes:
    return compact({"model": "scripted", **fields}) + b"\n"


def _says(spoken: Spoken) -> Iterator[Mapping[str, object]]:
    yield from ({"content": "", "thinking": piece} for piece in pieces(spoken.thinking))
    yield from ({"content": piece} for piece in pieces(spoken.text))
    for number, call in enumerate(spoken.calls):
        function = {"index": number, "name": call.name, "arguments": json.loads(call.arguments_text)}
        yield {"content": "", "tool_calls": [{"id": call.id, "function": function}]}


OLLAMA = OllamaRenderer()
