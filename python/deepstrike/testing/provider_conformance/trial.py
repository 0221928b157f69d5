"""A provider under test and the server that it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.providers.base import LLMProvider, Provider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.base import Timeouts
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.testing.renderers.base import Renderer, Spoken
from deepstrike.testing.server import ModelServer, Raw, Reply

if TYPE_CHECKING:
    from deepstrike.providers.service import CallOptions
    from deepstrike.testing.renderers.base import Trouble

KEY = "sk-conformance-0123456789abcdef"
ONCE = RetryConfig(max_retries=0, circuit_open_after=0)
SOON = RetryConfig(max_retries=2, base_delay=0.01, max_delay=0.01, circuit_open_after=0)
LATE = RetryConfig(max_retries=2, base_delay=60.0, max_delay=60.0, circuit_open_after=0)
_PATIENT = Timeouts(connect=15.0, first_event=15.0, idle=15.0, progress=15.0)


@dataclass(frozen=True, slots=True)
class Service:
    """What a provider is to be made for: the service's address, the key to send, and what to do about failures.

    `options` holds `retry_config`, `timeouts` and `circuit_breaker`. A provider that has no such keywords must be made
    with what they say: as many retries, waits and limits as short.
    """

    address: str
    key: str
    options: CallOptions


MakeProvider = Callable[[Service], LLMProvider]
"""Makes a new provider for this service each time it is called."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A provider, the server that it asks, and how that one writes."""

    provider: LLMProvider
    server: ModelServer
    renderer: Renderer


@dataclass(frozen=True, slots=True)
class Bench:
    """Makes trials of one kind of provider."""

    make: MakeProvider
    renderer: Renderer

    @asynccontextmanager
    async def trial(
        self, *replies: Reply, retry: RetryConfig = ONCE, timeouts: Timeouts = _PATIENT
    ) -> AsyncIterator[Trial]:
        """A new provider and a server that gives these replies, then whole answers that say "ok"."""
        otherwise = self.whole(Spoken("ok"))
        async with ModelServer(replies, otherwise=otherwise, judged=False) as server:
            options: CallOptions = {
                "retry_config": retry,
                "timeouts": timeouts,
                "circuit_breaker": CircuitBreaker(retry),
            }
            provider = self.make(Service(server.base_url, KEY, options))
            try:
                yield Trial(provider, server, self.renderer)
            finally:
                if isinstance(provider, Provider):
                    await provider.aclose()

    def whole(self, spoken: Spoken) -> Raw:
        """A whole answer, one write an event."""
        rendered = self.renderer.answer(spoken)
        return self.raw(*rendered.opening, *rendered.ending)

    def raw(self, *writes: bytes | float) -> Raw:
        """These writes as a stream that ends properly."""
        return Raw(writes, headers={"content-type": self.renderer.content_type})

    def refusal(self, trouble: Trouble, message: str = "refused by the test", **headers: str) -> Raw | None:
        """An error answer, None where this dialect has none of the kind. Header names have underscores."""
        found = self.renderer.refusal(trouble, message)
        if found is None:
            return None
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Raw([found[1]], found[0], {"content-type": "application/json", **named})


Body = Callable[[Bench], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ProviderCheck:
    """One promise of a provider; `name` says it."""

    name: str
    _body: Body

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakeProvider, renderer: Renderer) -> None:
        """Run the check on providers from `make`. Raises `AssertionError` with what was found instead."""
        await self._body(Bench(make, renderer))
