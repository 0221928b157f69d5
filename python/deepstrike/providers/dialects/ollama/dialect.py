"""Ollama's native dialect (`/api/chat`): the way to its codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked, Decoder, Reader


@dataclass(frozen=True, slots=True)
class OllamaDialect:
    """Chat with an Ollama server.

    The native interface, because only there the context window can be set (`options.num_ctx`). `structured`: a wanted
    form goes into `format`; beside tools it stands in the system message instead, because the grammar that `format`
    lays over the whole answer leaves no room for a tool call.
    """

    structured: bool = True
    content_type: str = "application/x-ndjson"

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/api/chat"

    def encode(self, asked: Asked) -> bytes:
        """See `Dialect.encode`."""
        from deepstrike.providers.dialects.ollama.encode import encode_request

        return encode_request(asked)

    def reader(self) -> Reader:
        """One JSON object a line."""
        from deepstrike.providers.dialects.ndjson import LineReader

        return LineReader()

    def decoder(self, asked: Asked) -> Decoder:
        """See `Dialect.decoder`."""
        from deepstrike.providers.dialects.ollama.decode import OllamaDecoder

        return OllamaDecoder(asked)
