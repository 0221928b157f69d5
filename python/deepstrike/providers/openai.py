"""OpenAI, and every server that speaks its chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.chat import ChatDialect
from deepstrike.providers.extensions import CHAT_FIELDS
from deepstrike.providers.models import OPENAI as ROWS
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker

OPENAI = Profile(
    name="openai-chat",
    base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    dialect=ChatDialect(),
    fields=CHAT_FIELDS,
    models=ROWS,
)


class OpenAIProvider(ServiceProvider):
    """Streams chat completions from OpenAI or, with `base_url`, from a compatible server.

    `api_key` defaults to `OPENAI_API_KEY`, `base_url` to `OPENAI_BASE_URL`, else to OpenAI's address. There a missing
    key raises `ConfigError`; a server elsewhere is then asked without an `Authorization` header. `headers` are added to
    every request and win over ours. `timeouts` are seconds (`Timeouts`), `retry_config` rules retries (`RetryConfig`).
    The circuit breaker is shared by all instances of one address and equal breaker settings unless `circuit_breaker` is
    given. `max_concurrency` bounds the calls in flight to this address, over all loops and threads of the process.
    Wrong values raise `ConfigError` here. One instance may serve any number of loops and threads, and forked processes.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = "gpt-5-mini",
        *,
        base_url: str | None = None,
        retry_config: RetryConfig | None = None,
        circuit_breaker: CircuitBreaker | None = None,
        timeouts: Timeouts | None = None,
        headers: Mapping[str, str] | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        super().__init__(
            OPENAI,
            api_key=api_key,
            model=model,
            base_url=base_url,
            retry_config=retry_config,
            circuit_breaker=circuit_breaker,
            timeouts=timeouts,
            headers=headers,
            max_concurrency=max_concurrency,
        )
