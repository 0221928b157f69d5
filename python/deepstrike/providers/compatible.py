"""Servers that speak OpenAI's chat completions: one's own, and vendors without a class of their own."""

from __future__ import annotations

import threading
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import BadRequest, ConfigError
from deepstrike.providers import access
from deepstrike.providers.dialects.chat.dialect import ChatDialect
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.settings import shown
from deepstrike.providers.tables.servers import GENERIC, SERVERS, server_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from typing_extensions import Unpack

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.providers.profile import Profile
    from deepstrike.providers.service import CallOptions

_USAGE_FIELD = "stream_options"
# Addresses that refused to be asked for token counts, for all providers of the process.
_uncounted: set[str] = set()
_uncounted_lock = threading.Lock()


class OpenAICompatibleProvider(ServiceProvider):
    """Streams chat completions from any server that speaks them.

    `profile` says what the server is: `vllm`, `llamacpp`, `lmstudio`, `openrouter`, `groq`, `xai`, `mistral`, `zai`,
    `azure`, `openai`, `qwen`, `deepseek`, `minimax`, `kimi`, or `generic`, which sends only fields that all servers
    take. `auto` chooses by the host of `base_url` and takes `generic` where that does not tell, as with local servers.
    `api_key` defaults to the variable of the profile (`OPENROUTER_API_KEY`, `GROQ_API_KEY`, `XAI_API_KEY`,
    `MISTRAL_API_KEY`, `ZAI_API_KEY`, `AZURE_OPENAI_API_KEY`, …); local servers and addresses of one's own need none. A
    query in `base_url` (Azure's `api-version`) stays behind the path. A server that refuses `stream_options` is asked
    again without it, and remembered; its token counts are then estimated. The other keywords are those of
    `CallOptions`.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        profile: str = "auto",
        **options: Unpack[CallOptions],
    ) -> None:
        super().__init__(_chosen(profile, base_url), api_key, model, base_url=base_url, **options)
        # Here the profile, named or known by the host, says what the server takes, whatever its address.
        self.structured = self._profile.dialect.structured

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """See `ServiceProvider.stream`."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._base_url in _uncounted:
            self._ask_without_counts(request)
        try:
            async with aclosing(self._ask(request)) as events:
                async for event in events:
                    yield event
            return
        except BadRequest as fault:
            # No code says which field it was; the message names it, and nothing was shown yet.
            if _USAGE_FIELD not in fault.message or _USAGE_FIELD.encode() not in request.memo.head:
                raise
        with _uncounted_lock:
            _uncounted.add(self._base_url)
        self._ask_without_counts(request)
        async with aclosing(self._ask(request)) as events:
            async for event in events:
                yield event

    async def _ask(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().stream(request):
            yield event

    def _ask_without_counts(self, request: ModelRequest) -> None:
        dialect = self._profile.dialect
        if isinstance(dialect, ChatDialect) and dialect.usage_asked:
            self._profile = replace(self._profile, dialect=replace(dialect, usage_asked=False))
        if _USAGE_FIELD.encode() in request.memo.head:
            request.memo.head = b""  # written anew, without the field


def _chosen(profile: str, base_url: str) -> Profile:
    if not isinstance(base_url, str) or not base_url.strip():
        raise ConfigError("base_url must be the address of the server, such as 'http://127.0.0.1:8000/v1'")
    if profile == "auto":
        return server_at(access.host(access.address(base_url, GENERIC)) or "")
    if profile not in SERVERS:
        raise ConfigError(f"profile must be 'auto' or one of {', '.join(sorted(SERVERS))}, not {shown(profile)}")
    return SERVERS[profile]
