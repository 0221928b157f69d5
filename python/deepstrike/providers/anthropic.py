"""Anthropic's Claude."""

from __future__ import annotations

import os
import warnings
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from deepstrike.errors import QuotaExhausted
from deepstrike.providers.base import Finish
from deepstrike.providers.dialects.messages.dialect import MessagesDialect
from deepstrike.providers.dialects.messages.fields import MESSAGES_FIELDS, check, clashing
from deepstrike.providers.dialects.messages.pause import PAUSED, Paused
from deepstrike.providers.dialects.messages.thinking import BINDING_BETA
from deepstrike.providers.faults import Words
from deepstrike.providers.models import lookup
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.settings import check_headers, check_model
from deepstrike.providers.tables.anthropic import ROWS
from deepstrike.stream import RetryEvent
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from typing_extensions import Unpack

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.providers.service import ServiceOptions

VERSION = "2023-06-01"
"""The version of the wire. The next one, 2026-10-21, only takes away: sampling fields, from every model."""

_BETAS = "anthropic-beta"
_MOST_PAUSES = 16

ANTHROPIC = Profile(
    name="anthropic",
    base_url="https://api.anthropic.com",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    dialect=MessagesDialect(),
    fields=MESSAGES_FIELDS,
    models=ROWS,
    key_header="x-api-key",
    key_form="{}",
    headers={"anthropic-version": VERSION},
    words=Words(texts={"credit balance is too low": QuotaExhausted}),
    lifetimes={("cache_ttl",): {"1h": 3_600_000, "off": 0}},
)


class AnthropicProvider(ServiceProvider):
    """Streams Claude's messages from Anthropic or, with `base_url`, from a gateway to it.

    `api_key` defaults to `ANTHROPIC_API_KEY`, `base_url` to `ANTHROPIC_BASE_URL`, else to Anthropic's address; `/v1` at
    its end may be there or not. A missing key raises `ConfigError`; a gateway elsewhere is then asked without one. An
    `anthropic-beta` among `headers` is sent beside those that the model needs. The other keywords are those of
    `ServiceOptions`.

    Models that bind their thinking to everything before it are asked to drop it where that has changed, so that a
    compressed context is never refused. Prompts are cached at up to four places (`extensions["cache_ttl"]`: "5m", "1h"
    or "off"). An answer that the service pauses is gone on with inside the same stream.
    """

    def __init__(
        self, api_key: str | None = None, model: str = "claude-sonnet-5-5", **options: Unpack[ServiceOptions]
    ) -> None:
        given = options.get("headers")
        check_model(model)
        check_headers(given)
        own = {name.lower(): value for name, value in (given or {}).items()}
        needed = BINDING_BETA if "prefix_bound" in lookup(model, ROWS).traits else ""
        self._betas = _joined([own.pop(_BETAS, ""), needed])
        headers = {**ANTHROPIC.headers, **({_BETAS: self._betas} if self._betas else {})}
        options["headers"], options["base_url"] = own, _without_version(options.get("base_url"))
        super().__init__(replace(ANTHROPIC, headers=headers), api_key, model, **options)
        self._with_betas: dict[str, AnthropicProvider] = {}

        # A function, because what it holds (the key among it) must not show in anything printed.
        def like_this(betas: str) -> AnthropicProvider:
            more: ServiceOptions = {**options, "headers": {**own, _BETAS: betas}}
            return AnthropicProvider(api_key, model, **more)

        self._like_this = like_this

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """See `Provider.admit`. Fields that exclude each other, or that only this model refuses, are dropped too."""
        given = super().admit(extensions)
        check(given)
        clashes = clashing(given, self.info)
        for name, why in clashes.items():
            warnings.warn(f"extension {name!r} was dropped: {why} ({self.info.id!r})", UserWarning, stacklevel=2)
        return {name: value for name, value in given.items() if name not in clashes}

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """See `ServiceProvider.stream`."""
        betas = request.extensions.get("betas")
        asked = self._for(betas) if isinstance(betas, list | tuple) and betas else self
        return asked._unpaused(request)

    async def aclose(self) -> None:
        """See `ServiceProvider.aclose`."""
        for provider in self._with_betas.values():
            await provider.aclose()
        await super().aclose()

    def _for(self, betas: Sequence[str]) -> AnthropicProvider:
        """This provider with more betas: they are a header, and headers belong to a connection."""
        joined = _joined([self._betas, *betas])
        found = self._with_betas.get(joined)
        if found is None:
            found = self._with_betas.setdefault(joined, self._like_this(joined))
        return found

    async def _unpaused(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The answer with the parts behind its pauses, of which only the last has a finish."""
        paused = Paused()
        for _ in range(_MOST_PAUSES):
            asked = paused.resumed(request, self.dialect, self.info.id) if paused.began else request
            seen: list[ModelEvent] = []
            answer = cast("AsyncGenerator[ModelEvent, None]", super().stream(asked))
            async with aclosing(answer) as events:
                async for event in events:
                    if type(event) is Usage:
                        event = paused.counted(event)
                    elif type(event) is RetryEvent and paused.began:
                        continue  # it would have what stands before the pause forgotten
                    elif type(event) is Finish and event.reason == PAUSED:
                        break
                    seen.append(event)
                    yield event
                else:
                    return
            for event in seen:
                paused.note(event)
        yield Finish("other")


def _joined(betas: Sequence[str]) -> str:
    """Values of the header, each once, in their order."""
    values = (value.strip() for beta in betas for value in beta.split(","))
    return ",".join(dict.fromkeys(filter(None, values)))


def _without_version(base_url: str | None) -> str | None:
    """Addresses are given with `/v1` for other vendors and without for this one."""
    url = base_url or os.environ.get(ANTHROPIC.url_variable)
    return url.strip().rstrip("/").removesuffix("/v1") if isinstance(url, str) else url
