"""Model services.

Names are loaded on first use, so that importing this package costs nothing of what is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.anthropic import AnthropicProvider
    from deepstrike.providers.base import (
        Artefact,
        Finish,
        LLMProvider,
        ModelEvent,
        ModelInfo,
        ModelRequest,
        Notice,
        OutputSchema,
        Provider,
        Source,
        ToolCall,
    )
    from deepstrike.providers.compatible import OpenAICompatibleProvider
    from deepstrike.providers.deepseek import DeepSeekProvider
    from deepstrike.providers.fallback import FallbackProvider
    from deepstrike.providers.gemini import GeminiProvider
    from deepstrike.providers.kimi import KimiProvider
    from deepstrike.providers.minimax import MiniMaxProvider
    from deepstrike.providers.ollama import OllamaProvider
    from deepstrike.providers.openai import OpenAIProvider
    from deepstrike.providers.qwen import QwenProvider
    from deepstrike.providers.replayed import ReplayProvider
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.scripted import ScriptedProvider
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker

_HOMES = {
    "AnthropicProvider": "anthropic",
    "Artefact": "base",
    "CircuitBreaker": "transport.breaker",
    "DeepSeekProvider": "deepseek",
    "FallbackProvider": "fallback",
    "Finish": "base",
    "GeminiProvider": "gemini",
    "KimiProvider": "kimi",
    "LLMProvider": "base",
    "MiniMaxProvider": "minimax",
    "ModelEvent": "base",
    "ModelInfo": "base",
    "ModelRequest": "base",
    "Notice": "base",
    "OllamaProvider": "ollama",
    "OpenAICompatibleProvider": "compatible",
    "OpenAIProvider": "openai",
    "OutputSchema": "base",
    "Provider": "base",
    "QwenProvider": "qwen",
    "ReplayProvider": "replayed",
    "RetryConfig": "retry",
    "ScriptedProvider": "scripted",
    "Source": "base",
    "Timeouts": "transport.base",
    "ToolCall": "base",
}

__all__ = [
    "AnthropicProvider",
    "Artefact",
    "CircuitBreaker",
    "DeepSeekProvider",
    "FallbackProvider",
    "Finish",
    "GeminiProvider",
    "KimiProvider",
    "LLMProvider",
    "MiniMaxProvider",
    "ModelEvent",
    "ModelInfo",
    "ModelRequest",
    "Notice",
    "OllamaProvider",
    "OpenAICompatibleProvider",
    "OpenAIProvider",
    "OutputSchema",
    "Provider",
    "QwenProvider",
    "ReplayProvider",
    "RetryConfig",
    "ScriptedProvider",
    "Source",
    "Timeouts",
    "ToolCall",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = vars(import_module(f"{__name__}.{home}"))[name]
    globals()[name] = value
    return value
