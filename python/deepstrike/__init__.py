"""An agent runtime on a Rust kernel.

Names are loaded on first use, so that `import deepstrike` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from deepstrike._version import __version__

if TYPE_CHECKING:
    from deepstrike.errors import (
        BadRequest,
        CircuitOpen,
        ConfigError,
        ContentFiltered,
        ContextOverflow,
        CorruptLog,
        DeepStrikeError,
        Overloaded,
        ProviderError,
        QuotaExhausted,
        RateLimited,
        RunFailed,
        SessionBusy,
        SessionError,
        StaleWriter,
        Stalled,
        ToolError,
        Truncated,
        Unauthorized,
        UnknownSession,
        Unreachable,
    )
    from deepstrike.execution.local import LocalExecutionPlane
    from deepstrike.options import RuntimeOptions
    from deepstrike.providers.base import LLMProvider, ModelRequest
    from deepstrike.providers.openai import OpenAIProvider
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.scripted import ScriptedProvider
    from deepstrike.providers.transport.base import Timeouts
    from deepstrike.providers.transport.breaker import CircuitBreaker
    from deepstrike.run import Run, collect_text
    from deepstrike.runner import RuntimeRunner
    from deepstrike.sessions.base import SessionLog
    from deepstrike.sessions.memory import InMemorySessionLog
    from deepstrike.stream import (
        AgentEvent,
        ContextCompressedEvent,
        DoneEvent,
        ErrorEvent,
        NoticeEvent,
        PendingRequest,
        PermissionRequestEvent,
        RetryEvent,
        RunResult,
        SignalEvent,
        StreamEvent,
        TextDelta,
        ThinkingDelta,
        ToolCallEvent,
        ToolDeltaEvent,
        ToolDeniedEvent,
        ToolResultEvent,
        ToolSuspendEvent,
        UsageEvent,
    )
    from deepstrike.tools.context import ToolContext
    from deepstrike.tools.decorator import tool
    from deepstrike.tools.files import read_file
    from deepstrike.tools.suspension import Suspend
    from deepstrike.wire.message import File, Image, Text

_HOMES = {
    "AgentEvent": "deepstrike.stream",
    "BadRequest": "deepstrike.errors",
    "CircuitBreaker": "deepstrike.providers.transport.breaker",
    "CircuitOpen": "deepstrike.errors",
    "ConfigError": "deepstrike.errors",
    "ContentFiltered": "deepstrike.errors",
    "ContextCompressedEvent": "deepstrike.stream",
    "ContextOverflow": "deepstrike.errors",
    "CorruptLog": "deepstrike.errors",
    "DeepStrikeError": "deepstrike.errors",
    "DoneEvent": "deepstrike.stream",
    "ErrorEvent": "deepstrike.stream",
    "File": "deepstrike.wire.message",
    "Image": "deepstrike.wire.message",
    "InMemorySessionLog": "deepstrike.sessions.memory",
    "LLMProvider": "deepstrike.providers.base",
    "LocalExecutionPlane": "deepstrike.execution.local",
    "ModelRequest": "deepstrike.providers.base",
    "NoticeEvent": "deepstrike.stream",
    "OpenAIProvider": "deepstrike.providers.openai",
    "Overloaded": "deepstrike.errors",
    "PendingRequest": "deepstrike.stream",
    "PermissionRequestEvent": "deepstrike.stream",
    "ProviderError": "deepstrike.errors",
    "QuotaExhausted": "deepstrike.errors",
    "RateLimited": "deepstrike.errors",
    "RetryConfig": "deepstrike.providers.retry",
    "RetryEvent": "deepstrike.stream",
    "Run": "deepstrike.run",
    "RunFailed": "deepstrike.errors",
    "RunResult": "deepstrike.stream",
    "RuntimeOptions": "deepstrike.options",
    "RuntimeRunner": "deepstrike.runner",
    "ScriptedProvider": "deepstrike.providers.scripted",
    "SessionBusy": "deepstrike.errors",
    "SessionError": "deepstrike.errors",
    "SessionLog": "deepstrike.sessions.base",
    "SignalEvent": "deepstrike.stream",
    "StaleWriter": "deepstrike.errors",
    "Stalled": "deepstrike.errors",
    "StreamEvent": "deepstrike.stream",
    "Suspend": "deepstrike.tools.suspension",
    "Text": "deepstrike.wire.message",
    "TextDelta": "deepstrike.stream",
    "ThinkingDelta": "deepstrike.stream",
    "Timeouts": "deepstrike.providers.transport.base",
    "ToolCallEvent": "deepstrike.stream",
    "ToolContext": "deepstrike.tools.context",
    "ToolDeltaEvent": "deepstrike.stream",
    "ToolDeniedEvent": "deepstrike.stream",
    "ToolError": "deepstrike.errors",
    "ToolResultEvent": "deepstrike.stream",
    "ToolSuspendEvent": "deepstrike.stream",
    "Truncated": "deepstrike.errors",
    "Unauthorized": "deepstrike.errors",
    "UnknownSession": "deepstrike.errors",
    "Unreachable": "deepstrike.errors",
    "UsageEvent": "deepstrike.stream",
    "collect_text": "deepstrike.run",
    "read_file": "deepstrike.tools.files",
    "tool": "deepstrike.tools.decorator",
}

__all__ = [
    "AgentEvent",
    "BadRequest",
    "CircuitBreaker",
    "CircuitOpen",
    "ConfigError",
    "ContentFiltered",
    "ContextCompressedEvent",
    "ContextOverflow",
    "CorruptLog",
    "DeepStrikeError",
    "DoneEvent",
    "ErrorEvent",
    "File",
    "Image",
    "InMemorySessionLog",
    "LLMProvider",
    "LocalExecutionPlane",
    "ModelRequest",
    "NoticeEvent",
    "OpenAIProvider",
    "Overloaded",
    "PendingRequest",
    "PermissionRequestEvent",
    "ProviderError",
    "QuotaExhausted",
    "RateLimited",
    "RetryConfig",
    "RetryEvent",
    "Run",
    "RunFailed",
    "RunResult",
    "RuntimeOptions",
    "RuntimeRunner",
    "ScriptedProvider",
    "SessionBusy",
    "SessionError",
    "SessionLog",
    "SignalEvent",
    "StaleWriter",
    "Stalled",
    "StreamEvent",
    "Suspend",
    "Text",
    "TextDelta",
    "ThinkingDelta",
    "Timeouts",
    "ToolCallEvent",
    "ToolContext",
    "ToolDeltaEvent",
    "ToolDeniedEvent",
    "ToolError",
    "ToolResultEvent",
    "ToolSuspendEvent",
    "Truncated",
    "Unauthorized",
    "UnknownSession",
    "Unreachable",
    "UsageEvent",
    "__version__",
    "collect_text",
    "read_file",
    "tool",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'deepstrike' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
