"""The Responses dialect: stateless, with the model's own items replayed in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked, Decoder, Reader


@dataclass(frozen=True, slots=True)
class ResponsesDialect:
    """OpenAI Responses, and servers that speak it.

    Nothing is kept at the service (`store` is false); encrypted reasoning is asked for where the model reasons, and
    goes back in front of the item that it led to. Slot 1 is `instructions`, slot 2 a developer message in front of the
    history. Models with the trait `cache_breakpoints` find a cached prefix at marked places only: at the vendor's own
    address they get both slots as developer messages, the last one marked, so that sessions share what comes before
    their first turn, and the marks of `places` behind it. `least_limit` is the smallest output limit that the service
    takes; a smaller one is raised to it.
    """

    least_limit: int = 16
    structured: bool = True
    content_type: str = "text/event-stream"

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/responses"

    def encode(self, asked: Asked) -> bytes:
        """See `Dialect.encode`."""
        from deepstrike.providers.dialects.responses.encode import encode_request

        limit = None if asked.limit is None else max(asked.limit, self.least_limit)
        return encode_request(asked, limit)

    def reader(self) -> Reader:
        """Server-sent events."""
        from deepstrike.providers.dialects.sse import SseReader

        return SseReader()

    def decoder(self, asked: Asked) -> Decoder:
        """See `Dialect.decoder`."""
        from deepstrike.providers.dialects.names import names_back
        from deepstrike.providers.dialects.responses.decode import ResponsesDecoder

        return ResponsesDecoder(
            names_back(asked.request.tools),
            asked.faults,
            asked.source,
            expose_reasoning=asked.request.extensions.get("expose_reasoning") is not False,
        )
