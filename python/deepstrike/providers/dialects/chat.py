"""The chat completions dialect: what services of this wire differ in, and the way to its codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked, Decoder, Reader


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """Chat completions.

    `limit_field` is the service's name for the output limit and `reasoning_limit_field` the one that reasoning models
    want. `reasoning_in_output` says whether its output count includes the reasoning.
    """

    limit_field: str = "max_tokens"
    reasoning_limit_field: str = "max_completion_tokens"
    reasoning_in_output: bool = True
    content_type: str = "text/event-stream"

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/chat/completions"

    def encode(self, asked: Asked) -> bytes:
        """See `Dialect.encode`."""
        from deepstrike.providers.dialects.chat_encode import encode_request

        field = self.reasoning_limit_field if asked.own_address or asked.info.reasoning else self.limit_field
        return encode_request(asked.request, asked.info.id, asked.fields, field, asked.limit)

    def reader(self) -> Reader:
        """Server-sent events."""
        from deepstrike.providers.dialects.sse import SseReader

        return SseReader()

    def decoder(self, asked: Asked) -> Decoder:
        """See `Dialect.decoder`."""
        from deepstrike.providers.dialects.chat_decode import ChatDecoder
        from deepstrike.providers.dialects.names import names_back

        return ChatDecoder(
            names_back(asked.request.tools),
            asked.faults,
            reasoning_in_output=self.reasoning_in_output,
            expose_reasoning=asked.request.extensions.get("expose_reasoning") is not False,
        )
