"""Model services.

Names are loaded on first use, so that importing this package costs nothing of what is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.base import (
        Artefact,
        Finish,
        LLMProvider,
        ModelEvent,
        ModelInfo,
        ModelRequest,
        Provider,
        ToolCall,
    )
    from deepstrike.providers.openai import OpenAIProvider
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.scripted import ScriptedProvider
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker

_HOMES = {
    "Artefact": "base",
    "CircuitBreaker": "transport.breaker",
    "Finish": "base",
    "LLMProvider": "base",
    "ModelEvent": "base",
    "ModelInfo": "base",
    "ModelRequest": "base",
    "OpenAIProvider": "openai",
    "Provider": "base",
    "RetryConfig": "retry",
    "ScriptedProvider": "scripted",
    "Timeouts": "transport.base",
    "ToolCall": "base",
}

__all__ = [
    "Artefact",
    "CircuitBreaker",
    "Finish",
    "LLMProvider",
    "ModelEvent",
    "ModelInfo",
    "ModelRequest",
    "OpenAIProvider",
    "Provider",
    "RetryConfig",
    "ScriptedProvider",
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
