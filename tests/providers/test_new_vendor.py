"""What it takes to add a vendor: a profile, a class of three lines, a line in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from wires import ask, collect, put_together

from deepstrike.errors import ConfigError, QuotaExhausted
from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.base import ModelInfo
from deepstrike.providers.compatible import OpenAICompatibleProvider
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.dialects.chat.dialect import ChatDialect, Replay
from deepstrike.providers.extensions import COMPATIBLE_FIELDS, FLAG
from deepstrike.providers.faults import Words
from deepstrike.providers.gemini import GeminiProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.profile import Profile
from deepstrike.providers.qwen import QwenProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.service import ServiceOptions, ServiceProvider
from deepstrike.providers.tables.servers import SERVERS
from deepstrike.testing.provider_conformance import PROVIDER_CHECKS, ProviderCheck, Service
from deepstrike.testing.renderers import CHAT
from deepstrike.testing.server import ModelServer, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

ACME = Profile(
    name="acme",
    base_url="https://api.acme.example/v1",
    key_variable="ACME_API_KEY",
    url_variable="ACME_BASE_URL",
    dialect=ChatDialect(limit_field="max_tokens", replay=Replay("reasoning_content", "tools")),
    fields={**COMPATIBLE_FIELDS, "careful": FLAG},
    models={"acme-large": ModelInfo("acme-large", 64_000, 4_000)},
    words=Words(codes={"out_of_coins": QuotaExhausted}),
)


class AcmeProvider(ServiceProvider):
    """Streams chat completions from Acme."""

    def __init__(
        self, api_key: str | None = None, model: str = "acme-large", **options: Unpack[ServiceOptions]
    ) -> None:
        super().__init__(ACME, api_key, model, **options)


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=str)
async def test_given_a_vendor_of_one_profile_when_it_is_held_to_the_checks_then_they_hold(check: ProviderCheck) -> None:
    def make(service: Service) -> AcmeProvider:
        return AcmeProvider(service.key, base_url=service.address, **service.options)

    await check.run(make, CHAT)


async def test_given_a_new_vendor_when_asked_then_its_table_its_fields_and_its_errors_are_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-key-1")
    with ModelServer([refusal(400, "no coins", code="out_of_coins")]) as server:
        provider = AcmeProvider(base_url=server.base_url)
        with pytest.raises(QuotaExhausted, match="no coins"):
            await collect(provider.stream(ask(careful=True)))
        await provider.aclose()
        assert server.requests[0].headers["authorization"] == "Bearer sk-acme-key-1"
        assert server.requests[0].body["careful"] is True
    assert (provider.info.window, provider.info.max_output) == (64_000, 4_000)
    with pytest.raises(ConfigError, match="did you mean 'careful'"):
        provider.admit({"carefull": True})


async def test_given_a_line_in_the_table_of_servers_when_the_address_is_its_own_then_auto_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SERVERS, "acme", ACME)
    found = OpenAICompatibleProvider("https://eu.api.acme.example/v1", "acme-large", "sk-acme-key-1")
    assert (found.dialect, found.info.window) == ("acme", 64_000)
    with ModelServer(["hello"]) as server:
        named = OpenAICompatibleProvider(server.base_url, "acme-large", profile="acme")
        assert put_together(await collect(named.stream(ask()))).text == "hello"
        await named.aclose()


MAKERS: list[Callable[..., ServiceProvider]] = [
    AnthropicProvider,
    DeepSeekProvider,
    GeminiProvider,
    KimiProvider,
    MiniMaxProvider,
    OpenAIProvider,
    QwenProvider,
    lambda key, **options: OllamaProvider("qwen3", api_key=key, **options),
    lambda key, **options: OpenAICompatibleProvider("http://127.0.0.1:9", "any", key, **options),
]


@pytest.mark.parametrize("make", MAKERS)
def test_given_a_wrong_keyword_when_a_provider_is_made_then_it_and_the_near_miss_are_named(
    make: Callable[..., ServiceProvider],
) -> None:
    with pytest.raises(
        TypeError, match=r"Provider\(\) has no keyword 'max_concurency'; did you mean 'max_concurrency'"
    ):
        make("sk-test-key-1", max_concurency=3)
    with pytest.raises(TypeError, match=r"has no keyword 'colour'; it has base_url, circuit_breaker, headers"):
        make("sk-test-key-1", colour="red")


@pytest.mark.parametrize("make", MAKERS)
def test_given_every_keyword_when_a_provider_is_made_then_it_takes_them(make: Callable[..., ServiceProvider]) -> None:
    provider = make("sk-test-key-1", retry_config=RetryConfig(max_retries=0), headers={"x-a": "b"}, max_concurrency=3)
    assert (provider._endpoint.retry, provider._endpoint.slots is None) == (RetryConfig(max_retries=0), False)


@pytest.mark.parametrize("make", MAKERS)
def test_given_values_that_do_not_fit_when_a_provider_is_made_then_each_is_named(
    make: Callable[..., ServiceProvider],
) -> None:
    for name, value in {
        "circuit_breaker": "one",
        "headers": ["x-a"],
        "max_concurrency": 0,
        "retry_config": 3,
        "timeouts": 30,
    }.items():
        with pytest.raises(ConfigError, match=name):
            make("sk-test-key-1", **{name: value})
