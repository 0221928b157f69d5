"""Chat completions, as OpenAI and most compatible services stream them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.providers.base import Finish
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing.renderers.base import Rendered, compact, pieces, sse
from deepstrike.testing.server import chat_stream

if TYPE_CHECKING:
    from deepstrike.testing.renderers.base import Spoken, Trouble

_REFUSALS: dict[Trouble, tuple[int, str]] = {
    "rate_limited": (429, "rate_limit_exceeded"),
    "overloaded": (529, "overloaded_error"),
    "failing": (500, "server_error"),
    "unauthorized": (401, "invalid_api_key"),
    "quota_exhausted": (429, "insufficient_quota"),
}
_ENDING = 3  # the finish reason, the usage, the end marker


def error(message: str, code: str) -> dict[str, object]:
    """The error object that OpenAI's two dialects share."""
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


@dataclass(frozen=True, slots=True)
class ChatRenderer:
    """Thinking in `reasoning_content`, the usage in a chunk of its own."""

    content_type: str = "text/event-stream"
    counts: frozenset[str] = frozenset({"input", "output", "cached", "cache_write", "reasoning"})
    comment: bytes | None = b": keep-alive\n\n"

    def answer(self, spoken: Spoken) -> Rendered:
        """See `Renderer.answer`."""
        thoughts = [ThinkingDelta(piece) for piece in pieces(spoken.thinking)]
        words = [TextDelta(piece) for piece in pieces(spoken.text)]
        writes = chat_stream([*thoughts, *words, *spoken.calls, spoken.usage, Finish(spoken.finish)])
        return Rendered(tuple(writes[:-_ENDING]), tuple(writes[-_ENDING:]))

    def failure(self, message: str) -> bytes:
        """See `Renderer.failure`."""
        return sse(error(message, "server_error"))

    def refusal(self, trouble: Trouble, message: str) -> tuple[int, bytes] | None:
        """See `Renderer.refusal`."""
        status, code = _REFUSALS[trouble]
        return status, compact(error(message, code))


CHAT = ChatRenderer()
