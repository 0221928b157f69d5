"""A model service over HTTP: a profile and a dialect make it one vendor or another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypedDict

from deepstrike.errors import ConfigError
from deepstrike.providers import access
from deepstrike.providers import extensions as known
from deepstrike.providers.base import Provider
from deepstrike.providers.faults import Faults
from deepstrike.providers.models import lookup
from deepstrike.providers.redact import Mask
from deepstrike.providers.settings import check_count, check_headers, check_model, check_names, check_type
from deepstrike.secrets import bind_named

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from typing_extensions import Unpack

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.providers.dialects.base import Asked, Decoder, Reader
    from deepstrike.providers.dialects.strict import StrictRules
    from deepstrike.providers.profile import Profile
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker
    from deepstrike.providers.transport.call import Question
    from deepstrike.providers.transport.endpoint import Endpoint

_KEY = "prompt_cache_key"


class CallOptions(TypedDict, total=False):
    """Keywords of every provider that speaks HTTP; None, or leaving one out, means the usual.

    `retry_config`: retries and the circuit breaker's limits. `circuit_breaker`: one of your own; else all instances of
    one address and equal breaker limits share one. `timeouts`: limits in seconds. `headers`: sent with every request;
    they win over ours. `max_concurrency`: how many calls to this address may be in flight at once, over all loops and
    threads of the process; the others wait, first come, first served. The usual limit is 100.

    Wrong values raise `ConfigError` when the provider is built, a wrong keyword a `TypeError`. One instance may serve
    any number of loops and threads, and forked processes.
    """

    retry_config: RetryConfig | None
    circuit_breaker: CircuitBreaker | None
    timeouts: Timeouts | None
    headers: Mapping[str, str] | None
    max_concurrency: int | None


class ServiceOptions(CallOptions, total=False):
    """`CallOptions`, and the address.

    `base_url`: else that of the vendor's environment variable, else the vendor's own. There a missing key raises
    `ConfigError`; a server elsewhere is then asked without one.
    """

    base_url: str | None


class ServiceProvider(Provider):
    """Streams a service's answers. The constructor checks everything; nothing is opened before the first request.

    A vendor is a subclass that hands in its profile; a profile may also be used as it is.
    """

    def __init__(self, profile: Profile, api_key: str | None, model: str, **options: Unpack[ServiceOptions]) -> None:
        check_names(type(self).__name__, options, ServiceOptions.__optional_keys__)
        base_url, headers = options.get("base_url"), options.get("headers")
        check_model(model)
        check_type("base_url", base_url, str, "an address as text")
        check_headers(headers)
        self.info = lookup(model, profile.models)
        self.dialect = profile.name
        self._profile = profile
        self._base_url = access.address(base_url, profile)
        self._own_address = access.is_at(self._base_url, access.host(profile.base_url), profile.hosts)
        # A compatible server elsewhere may know no such field. A service without keys is always elsewhere.
        self.structured = profile.dialect.structured and (self._own_address or not profile.key_needed)
        key = access.key(api_key, profile, needed=profile.key_needed and self._own_address)
        self._mask = Mask([key or "", *(headers or {}).values()])
        bind_named({"key": key or "", **(headers or {})})
        self._faults = Faults(self._mask, profile.words)
        sent = access.headers(key, profile, headers)

        def endpoint(base_url: str) -> Endpoint:
            url = access.join(base_url, profile.dialect.path(model))
            return _endpoint(self._base_url, url, sent, self._faults, profile.timeouts, options)

        self._endpoint = endpoint(self._base_url)
        moved = bool(profile.strict_path) and self._own_address
        self._strict = endpoint(access.elsewhere(self._base_url, profile.strict_path)) if moved else self._endpoint

    def __reduce__(self) -> NoReturn:
        """Raises `ConfigError`: it holds a key and connections, which are copied nowhere."""
        name = type(self).__name__
        raise ConfigError(
            f"{name} holds a key and connections, so it is neither pickled nor copied: share it, or build another one"
        )

    def sends_form(self) -> bool:
        """See `Provider.sends_form`: also to an address of which nobody knows whether it takes the form."""
        return self.structured or self._profile.dialect.structured

    @property
    def strict_rules(self) -> StrictRules:
        """What the service's strict mode takes of a tool's schema; see `strict_report`."""
        from deepstrike.providers.dialects.strict import USUAL

        return getattr(self._profile.dialect, "strict", USUAL)

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """See `Provider.admit`."""
        return known.admit(extensions, self._profile.fields, self.info)

    def cache_ms(self, extensions: Mapping[str, object]) -> int:
        """See `Provider.cache_ms`."""
        given = {**self.info.defaults, **extensions}
        for place, lifetimes in self._profile.lifetimes.items():
            value = known.at(given, place)
            if isinstance(value, str) and value in lifetimes:
                return lifetimes[value]
        return self.info.cache_ms

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model. Raises a `ProviderError`; a `RetryEvent` says that a try failed before anything was shown."""
        from deepstrike.providers.transport.call import call

        return call(lambda: self._question(request))

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._endpoint.transport.aclose()
        await self._strict.transport.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.info.id!r}, base_url={self._mask(self._base_url)!r})"

    def _question(self, request: ModelRequest) -> Question:
        from deepstrike.providers.transport.call import Question

        dialect, asked = self._profile.dialect, self._asked(request)

        def codec() -> tuple[Reader, Decoder]:
            return dialect.reader(), dialect.decoder(asked)

        body = dialect.encode(asked)
        notices, request.memo.notices = tuple(request.memo.notices), []
        endpoint = self._strict if request.memo.strict else self._endpoint
        return Question(endpoint, body, codec, dialect.content_type, notices)

    def _asked(self, request: ModelRequest) -> Asked:
        from deepstrike.providers.dialects.base import Asked

        fields: dict[str, object] = {}
        if not request.memo.head:  # the fields stand in the head, which is written once
            given = {**self._keys(request), **self.info.defaults, **self.admit(request.extensions)}
            fields = known.wire_fields(given, self._profile.fields)
        limit = request.max_output
        if limit is None:
            wanted = request.extensions.get("max_output_tokens")
            limit = wanted if isinstance(wanted, int) else None
        return Asked(request, self.info, self._profile.name, fields, limit, self._faults, self._own_address)

    def _keys(self, request: ModelRequest) -> Mapping[str, object]:
        """The key by which the service finds the session's prompts, where it takes one; a compatible server may not."""
        if not (self._profile.keyed and self._own_address and request.cache_key) or _KEY in self.info.refuses:
            return {}
        return {_KEY: request.cache_key}


def _endpoint(
    base_url: str,
    url: str,
    headers: Mapping[str, str],
    faults: Faults,
    usual: Timeouts | None,
    options: ServiceOptions,
) -> Endpoint:
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker, shared_breaker
    from deepstrike.providers.transport.endpoint import Endpoint
    from deepstrike.providers.transport.http import HttpTransport
    from deepstrike.providers.transport.slots import shared_slots

    retry, breaker = options.get("retry_config"), options.get("circuit_breaker")
    timeouts, limit = options.get("timeouts"), options.get("max_concurrency")
    check_type("retry_config", retry, RetryConfig, "a RetryConfig(…)")
    check_type("circuit_breaker", breaker, CircuitBreaker, "a CircuitBreaker(…)")
    check_type("timeouts", timeouts, Timeouts, "a Timeouts(…)")
    if limit is not None:
        check_count("max_concurrency", limit, 1, ", or None for the usual limit")
    retry, timeouts = retry or RetryConfig(), timeouts or usual or Timeouts()
    return Endpoint(
        base_url,
        HttpTransport(url, headers, timeouts.connect, faults.mask),
        timeouts,
        retry,
        breaker or shared_breaker(base_url, retry),
        shared_slots(base_url, limit),
        faults,
    )
