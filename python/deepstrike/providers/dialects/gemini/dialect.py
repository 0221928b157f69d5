"""Gemini's native dialect (`streamGenerateContent`): the way to its codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked, Decoder, Reader


@dataclass(frozen=True, slots=True)
class GeminiDialect:
    """Content generation by a Gemini model.

    `structured`: a wanted form goes into `responseJsonSchema`; for models before Gemini 3, which refuse that beside
    function declarations, it stands in the system instruction instead when there are tools.
    """

    structured: bool = True
    content_type: str = "text/event-stream"

    def path(self, model: str) -> str:
        """The model stands in the path; one with a slash in its name (`tunedModels/mine`) is a path of its own."""
        place = quote(model, safe="/-._~") if "/" in model else f"models/{quote(model, safe='-._~')}"
        return f"/{place}:streamGenerateContent?alt=sse"

    def encode(self, asked: Asked) -> bytes:
        """See `Dialect.encode`."""
        from deepstrike.providers.dialects.gemini.encode import encode_request

        return encode_request(asked)

    def reader(self) -> Reader:
        """Server-sent events."""
        from deepstrike.providers.dialects.sse import SseReader

        return SseReader()

    def decoder(self, asked: Asked) -> Decoder:
        """See `Dialect.decoder`."""
        from deepstrike.providers.dialects.gemini.decode import GeminiDecoder
        from deepstrike.providers.dialects.names import names_back

        return GeminiDecoder(
            names_back(asked.request.tools),
            asked.faults,
            asked.source,
            expose_reasoning=asked.request.extensions.get("expose_reasoning") is not False,
        )
