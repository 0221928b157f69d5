"""Any service of the chat completions dialect; the vendors' files only add a profile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from deepstrike._version import __version__
from deepstrike.errors import ConfigError
from deepstrike.providers import extensions as known
from deepstrike.providers.base import Provider
from deepstrike.providers.models import lookup
from deepstrike.providers.redact import Mask
from deepstrike.providers.settings import check_count, check_headers, check_model, check_type, is_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.providers.dialects.base import Decoder, Reader
    from deepstrike.providers.profile import Profile
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker
    from deepstrike.providers.transport.call import Question
    from deepstrike.providers.transport.endpoint import Endpoint


class ChatProvider(Provider):
    """Streams chat completions. The constructor checks everything; nothing is opened before the first request."""

    dialect = "openai-chat"

    def __init__(
        self,
        profile: Profile,
        *,
        api_key: str | None,
        model: str,
        base_url: str | None,
        retry_config: RetryConfig | None,
        circuit_breaker: CircuitBreaker | None,
        timeouts: Timeouts | None,
        headers: Mapping[str, str] | None,
        max_concurrency: int | None,
    ) -> None:
        check_model(model)
        check_type("base_url", base_url, str, "an address as text")
        check_headers(headers)
        if max_concurrency is not None:
            check_count("max_concurrency", max_concurrency, 1, ", or None for no limit")
        self.info = lookup(model)
        self._profile = profile
        self._base_url = _address(base_url or os.environ.get(profile.url_variable) or profile.base_url, profile)
        self._own_address = _host(self._base_url) == _host(profile.base_url)
        key = _key(api_key, profile, self._own_address)
        sent = _headers(key, headers)
        self._mask = Mask([key or "", *(headers or {}).values()])
        self._endpoint = _endpoint(
            self._base_url, sent, self._mask, retry_config, circuit_breaker, timeouts, max_concurrency
        )

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """See `Provider.admit`."""
        return known.admit(extensions, self._profile.fields, self.info)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model. Raises a `ProviderError`; a `RetryEvent` says that a try failed before anything was shown."""
        from deepstrike.providers.transport.call import call

        return call(lambda: self._question(request))

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._endpoint.transport.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.info.id!r}, base_url={self._mask(self._base_url)!r})"

    def _question(self, request: ModelRequest) -> Question:
        from deepstrike.providers.dialects.chat_decode import ChatDecoder
        from deepstrike.providers.dialects.names import names_back
        from deepstrike.providers.dialects.sse import SseReader
        from deepstrike.providers.transport.call import Question

        names, mask = names_back(request.tools), self._mask
        inside = self._profile.reasoning_in_output
        expose = request.extensions.get("expose_reasoning") is not False

        def dialect() -> tuple[Reader, Decoder]:
            return SseReader(), ChatDecoder(names, mask, reasoning_in_output=inside, expose_reasoning=expose)

        return Question(self._endpoint, self._encode(request), dialect)

    def _encode(self, request: ModelRequest) -> bytes:
        from deepstrike.providers.dialects.chat_encode import encode_request

        fields: dict[str, object] = {}
        if not request.memo.head:  # the fields stand in the head, which is written once
            fields = known.wire_fields(self.admit(request.extensions), self._profile.fields)
        limit = request.max_output
        if limit is None:
            asked = request.extensions.get("max_output_tokens")
            limit = asked if isinstance(asked, int) else None
        return encode_request(request, self.info.id, fields, self._limit_field(), limit)

    def _limit_field(self) -> str:
        reasoning = self._own_address or self.info.reasoning
        return self._profile.reasoning_limit_field if reasoning else self._profile.limit_field


def _endpoint(
    base_url: str,
    headers: Mapping[str, str],
    mask: Mask,
    retry: RetryConfig | None,
    breaker: CircuitBreaker | None,
    timeouts: Timeouts | None,
    max_concurrency: int | None,
) -> Endpoint:
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker, shared_breaker
    from deepstrike.providers.transport.endpoint import Endpoint
    from deepstrike.providers.transport.http import HttpTransport
    from deepstrike.providers.transport.slots import shared_slots

    check_type("retry_config", retry, RetryConfig, "a RetryConfig(…)")
    check_type("circuit_breaker", breaker, CircuitBreaker, "a CircuitBreaker(…)")
    check_type("timeouts", timeouts, Timeouts, "a Timeouts(…)")
    retry, timeouts = retry or RetryConfig(), timeouts or Timeouts()
    url = _join(base_url, "/chat/completions")
    return Endpoint(
        base_url,
        HttpTransport(url, headers, timeouts.connect, mask),
        timeouts,
        retry,
        breaker or shared_breaker(base_url, retry),
        None if max_concurrency is None else shared_slots(base_url, max_concurrency),
        mask,
    )


def _address(url: str, profile: Profile) -> str:
    """The address, checked and without a slash at its end."""
    try:
        url = url.strip()
        place = urlsplit(url)
        fits = place.scheme in ("http", "https") and is_host(place.hostname or "") and place.port != 0
        fits = fits and url.isprintable() and " " not in url
    except ValueError:
        place, fits = urlsplit(""), False
    if not fits:
        raise ConfigError(
            f"base_url (or {profile.url_variable}) must be an http or https address without blanks, "
            f"such as {profile.base_url!r}"
        )
    if place.username or place.password:
        raise ConfigError("base_url must not hold a user or password: pass the key as api_key, others in headers")
    return urlunsplit(place._replace(path=place.path.rstrip("/"), fragment=""))


def _join(base_url: str, path: str) -> str:
    """`path` behind the path of `base_url`, whose query stays."""
    place = urlsplit(base_url)
    return urlunsplit(place._replace(path=place.path + path))


def _host(url: str) -> str | None:
    return urlsplit(url).hostname


def _key(api_key: str | None, profile: Profile, own_address: bool) -> str | None:
    """The key, given or from the environment. A compatible server elsewhere may want none."""
    if api_key is not None and not isinstance(api_key, str):
        raise ConfigError(f"api_key must be the key as text, or None for that in {profile.key_variable}")
    key = (os.environ.get(profile.key_variable) if api_key is None else api_key) or None
    if key is None:
        if own_address:
            raise ConfigError(f"no API key: set {profile.key_variable}, or pass api_key")
        return None
    key = key.strip()
    if not key.isascii() or not key.isprintable() or not key:
        raise ConfigError("the API key holds characters that no key has (a line break or a copied ellipsis?)")
    return key


def _headers(key: str | None, extra: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of every request; those given by the user win."""
    headers = {
        "accept": "text/event-stream, application/json",
        # Compressing proxies hold a stream back until a block is full.
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": f"deepstrike/{__version__}",
    }
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return headers | {name.lower(): value for name, value in (extra or {}).items()}
