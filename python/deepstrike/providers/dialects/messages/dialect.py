"""The messages dialect: what services of this wire differ in, and the way to its codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked, Decoder, Reader


@dataclass(frozen=True, slots=True)
class MessagesDialect:
    """Anthropic's messages, also offered by others under an address of their own.

    `cache`: takes cache breakpoints. `signed`: takes thinking back only with its signature (elsewhere than at its own
    address it may be a compatible service, whose thinking has none). `structured`: has a field for the form that an
    answer must have. The traits of a model that count are those of `messages_thinking`, and `auto_tools_only`: it
    refuses a forced choice of tool.
    """

    cache: bool = True
    signed: bool = True
    structured: bool = True
    content_type: str = "text/event-stream"

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/v1/messages"

    def encode(self, asked: Asked) -> bytes:
        """See `Dialect.encode`."""
        from deepstrike.providers.dialects.messages.encode import encode_request

        return encode_request(asked, cache=self.cache, structured=self.structured)

    def reader(self) -> Reader:
        """Server-sent events."""
        from deepstrike.providers.dialects.sse import SseReader

        return SseReader()

    def decoder(self, asked: Asked) -> Decoder:
        """See `Dialect.decoder`."""
        from deepstrike.providers.dialects.messages.decode import MessagesDecoder
        from deepstrike.providers.dialects.names import names_back

        return MessagesDecoder(
            asked.source,
            names_back(asked.request.tools),
            asked.faults,
            expose_reasoning=asked.request.extensions.get("expose_reasoning") is not False,
            signed=self.signed and asked.own_address,
        )
