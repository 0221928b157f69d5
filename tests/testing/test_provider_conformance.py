"""The conformance suite holds for every provider of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.compatible import OpenAICompatibleProvider
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.fallback import FallbackProvider
from deepstrike.providers.gemini import GeminiProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.qwen import QwenProvider
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.testing.provider_conformance import PROTOCOL_CHECKS, PROVIDER_CHECKS
from deepstrike.testing.renderers import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES

if TYPE_CHECKING:
    from deepstrike.providers.base import LLMProvider
    from deepstrike.testing.provider_conformance import MakeProvider, ProtocolCheck, ProviderCheck, Service
    from deepstrike.testing.renderers import Renderer


def compatible(profile: str) -> MakeProvider:
    def make(service: Service) -> LLMProvider:
        return OpenAICompatibleProvider(service.address, "any", service.key, profile=profile, **service.options)

    return make


PROVIDERS: dict[str, tuple[MakeProvider, Renderer]] = {
    "anthropic": (lambda it: AnthropicProvider(it.key, base_url=it.address, **it.options), MESSAGES),
    "deepseek": (lambda it: DeepSeekProvider(it.key, base_url=it.address, **it.options), CHAT),
    "fallback": (
        lambda it: FallbackProvider(QwenProvider(it.key, base_url=it.address, **it.options)),
        CHAT,
    ),
    "gemini": (lambda it: GeminiProvider(it.key, base_url=it.address, **it.options), GEMINI),
    "generic": (compatible("generic"), CHAT),
    "kimi": (lambda it: KimiProvider(it.key, base_url=it.address, **it.options), CHAT),
    "minimax": (lambda it: MiniMaxProvider(it.key, base_url=it.address, **it.options), CHAT),
    "ollama": (lambda it: OllamaProvider("qwen3:4b", it.address, api_key=it.key, **it.options), OLLAMA),
    "openai-chat": (lambda it: OpenAIProvider(it.key, api="chat", base_url=it.address, **it.options), CHAT),
    "openai-responses": (
        lambda it: OpenAIProvider(it.key, api="responses", base_url=it.address, **it.options),
        RESPONSES,
    ),
    "openrouter": (compatible("openrouter"), CHAT),
    "qwen": (lambda it: QwenProvider(it.key, base_url=it.address, **it.options), CHAT),
    "vllm": (compatible("vllm"), CHAT),
}


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=str)
@pytest.mark.parametrize("name", PROVIDERS)
async def test_given_a_provider_of_ours_when_it_is_held_to_the_checks_then_they_hold(
    name: str, check: ProviderCheck
) -> None:
    make, renderer = PROVIDERS[name]
    await check.run(make, renderer)


@pytest.mark.parametrize("check", PROTOCOL_CHECKS, ids=str)
async def test_given_a_provider_without_http_when_it_is_held_to_the_protocol_then_it_holds(
    check: ProtocolCheck,
) -> None:
    await check.run(lambda: ScriptedProvider(["some words"], repeat_last=True))
