"""An agent runtime on a Rust kernel.

Names are loaded on first use, so that `import deepstrike` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from deepstrike._version import __version__

if TYPE_CHECKING:
    from deepstrike.errors import ConfigError, DeepStrikeError, ProviderError, RunFailed, SessionError, ToolError
    from deepstrike.execution.composite import CompositePlane
    from deepstrike.execution.filtered import FilteredExecutionPlane
    from deepstrike.execution.local import LocalExecutionPlane
    from deepstrike.execution.mcp.plane import McpExecutionPlane
    from deepstrike.execution.sandbox import SandboxExecutionPlane
    from deepstrike.governance.approval import Approve, Deny
    from deepstrike.governance.permissions import PermissionManager, PermissionMode
    from deepstrike.governance.policy import Governance
    from deepstrike.harness.gate import QualityGate
    from deepstrike.harness.loops import EvalLoopHarness, HarnessLoop, SinglePassHarness, SubAgentHarnessConfig
    from deepstrike.harness.outcome import HarnessOutcome
    from deepstrike.harness.request import Criterion, HarnessRequest
    from deepstrike.harness.verdict import Verdict
    from deepstrike.knowledge.base import KnowledgeSource
    from deepstrike.knowledge.folder import FolderKnowledge
    from deepstrike.memory.base import DreamStore
    from deepstrike.memory.in_memory import InMemoryDreamStore
    from deepstrike.memory.sqlite import SqliteDreamStore
    from deepstrike.memory.working import WorkingMemory
    from deepstrike.options import RuntimeOptions
    from deepstrike.providers.anthropic import AnthropicProvider
    from deepstrike.providers.base import LLMProvider, ModelRequest
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
    from deepstrike.roles import AgentRunSpec
    from deepstrike.run import Run, collect_text
    from deepstrike.runner import RuntimeRunner
    from deepstrike.sessions.base import SessionLog
    from deepstrike.sessions.file import FileSessionLog
    from deepstrike.sessions.memory import InMemorySessionLog
    from deepstrike.sessions.sqlite import SqliteSessionLog
    from deepstrike.skills.registry import SkillRegistry
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
    "AgentRunSpec": "deepstrike.roles",
    "AnthropicProvider": "deepstrike.providers.anthropic",
    "Approve": "deepstrike.governance.approval",
    "CircuitBreaker": "deepstrike.providers.transport.breaker",
    "CompositePlane": "deepstrike.execution.composite",
    "ConfigError": "deepstrike.errors",
    "ContextCompressedEvent": "deepstrike.stream",
    "Criterion": "deepstrike.harness.request",
    "DeepSeekProvider": "deepstrike.providers.deepseek",
    "DeepStrikeError": "deepstrike.errors",
    "Deny": "deepstrike.governance.approval",
    "DoneEvent": "deepstrike.stream",
    "DreamStore": "deepstrike.memory.base",
    "ErrorEvent": "deepstrike.stream",
    "EvalLoopHarness": "deepstrike.harness.loops",
    "FallbackProvider": "deepstrike.providers.fallback",
    "File": "deepstrike.wire.message",
    "FileSessionLog": "deepstrike.sessions.file",
    "FilteredExecutionPlane": "deepstrike.execution.filtered",
    "FolderKnowledge": "deepstrike.knowledge.folder",
    "GeminiProvider": "deepstrike.providers.gemini",
    "Governance": "deepstrike.governance.policy",
    "HarnessLoop": "deepstrike.harness.loops",
    "HarnessOutcome": "deepstrike.harness.outcome",
    "HarnessRequest": "deepstrike.harness.request",
    "Image": "deepstrike.wire.message",
    "InMemoryDreamStore": "deepstrike.memory.in_memory",
    "InMemorySessionLog": "deepstrike.sessions.memory",
    "KimiProvider": "deepstrike.providers.kimi",
    "KnowledgeSource": "deepstrike.knowledge.base",
    "LLMProvider": "deepstrike.providers.base",
    "LocalExecutionPlane": "deepstrike.execution.local",
    "McpExecutionPlane": "deepstrike.execution.mcp.plane",
    "MiniMaxProvider": "deepstrike.providers.minimax",
    "ModelRequest": "deepstrike.providers.base",
    "NoticeEvent": "deepstrike.stream",
    "OllamaProvider": "deepstrike.providers.ollama",
    "OpenAICompatibleProvider": "deepstrike.providers.compatible",
    "OpenAIProvider": "deepstrike.providers.openai",
    "PendingRequest": "deepstrike.stream",
    "PermissionManager": "deepstrike.governance.permissions",
    "PermissionMode": "deepstrike.governance.permissions",
    "PermissionRequestEvent": "deepstrike.stream",
    "ProviderError": "deepstrike.errors",
    "QualityGate": "deepstrike.harness.gate",
    "QwenProvider": "deepstrike.providers.qwen",
    "ReplayProvider": "deepstrike.providers.replayed",
    "RetryConfig": "deepstrike.providers.retry",
    "RetryEvent": "deepstrike.stream",
    "Run": "deepstrike.run",
    "RunFailed": "deepstrike.errors",
    "RunResult": "deepstrike.stream",
    "RuntimeOptions": "deepstrike.options",
    "RuntimeRunner": "deepstrike.runner",
    "SandboxExecutionPlane": "deepstrike.execution.sandbox",
    "ScriptedProvider": "deepstrike.providers.scripted",
    "SessionError": "deepstrike.errors",
    "SessionLog": "deepstrike.sessions.base",
    "SignalEvent": "deepstrike.stream",
    "SinglePassHarness": "deepstrike.harness.loops",
    "SkillRegistry": "deepstrike.skills.registry",
    "SqliteDreamStore": "deepstrike.memory.sqlite",
    "SqliteSessionLog": "deepstrike.sessions.sqlite",
    "StreamEvent": "deepstrike.stream",
    "SubAgentHarnessConfig": "deepstrike.harness.loops",
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
    "UsageEvent": "deepstrike.stream",
    "Verdict": "deepstrike.harness.verdict",
    "WorkingMemory": "deepstrike.memory.working",
    "collect_text": "deepstrike.run",
    "read_file": "deepstrike.tools.files",
    "tool": "deepstrike.tools.decorator",
}

__all__ = [
    "AgentEvent",
    "AgentRunSpec",
    "AnthropicProvider",
    "Approve",
    "CircuitBreaker",
    "CompositePlane",
    "ConfigError",
    "ContextCompressedEvent",
    "Criterion",
    "DeepSeekProvider",
    "DeepStrikeError",
    "Deny",
    "DoneEvent",
    "DreamStore",
    "ErrorEvent",
    "EvalLoopHarness",
    "FallbackProvider",
    "File",
    "FileSessionLog",
    "FilteredExecutionPlane",
    "FolderKnowledge",
    "GeminiProvider",
    "Governance",
    "HarnessLoop",
    "HarnessOutcome",
    "HarnessRequest",
    "Image",
    "InMemoryDreamStore",
    "InMemorySessionLog",
    "KimiProvider",
    "KnowledgeSource",
    "LLMProvider",
    "LocalExecutionPlane",
    "McpExecutionPlane",
    "MiniMaxProvider",
    "ModelRequest",
    "NoticeEvent",
    "OllamaProvider",
    "OpenAICompatibleProvider",
    "OpenAIProvider",
    "PendingRequest",
    "PermissionManager",
    "PermissionMode",
    "PermissionRequestEvent",
    "ProviderError",
    "QualityGate",
    "QwenProvider",
    "ReplayProvider",
    "RetryConfig",
    "RetryEvent",
    "Run",
    "RunFailed",
    "RunResult",
    "RuntimeOptions",
    "RuntimeRunner",
    "SandboxExecutionPlane",
    "ScriptedProvider",
    "SessionError",
    "SessionLog",
    "SignalEvent",
    "SinglePassHarness",
    "SkillRegistry",
    "SqliteDreamStore",
    "SqliteSessionLog",
    "StreamEvent",
    "SubAgentHarnessConfig",
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
    "UsageEvent",
    "Verdict",
    "WorkingMemory",
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
