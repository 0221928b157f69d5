"""The names at the top level: a change here is a change of the public API."""

from __future__ import annotations

import subprocess
import sys

import pytest

import deepstrike

NAMES = {
    "running": "LLMProvider ModelRequest PendingRequest Run RunResult RuntimeOptions RuntimeRunner collect_text",
    "providers": (
        "AnthropicProvider CircuitBreaker DeepSeekProvider FallbackProvider GeminiProvider KimiProvider "
        "MiniMaxProvider OllamaProvider OpenAICompatibleProvider OpenAIProvider QwenProvider ReplayProvider "
        "RetryConfig ScriptedProvider Timeouts"
    ),
    "sub-agents": "AgentRunSpec",
    "tools": "LocalExecutionPlane Suspend ToolContext read_file tool",
    "planes": "CompositePlane FilteredExecutionPlane McpExecutionPlane SandboxExecutionPlane",
    "governance": "Approve Deny Governance PermissionManager PermissionMode",
    "sources": (
        "DreamStore FolderKnowledge InMemoryDreamStore KnowledgeSource SkillRegistry SqliteDreamStore WorkingMemory"
    ),
    "sessions": "FileSessionLog InMemorySessionLog SessionLog SqliteSessionLog",
    "harness": (
        "Criterion EvalLoopHarness HarnessLoop HarnessOutcome HarnessRequest QualityGate SinglePassHarness "
        "SubAgentHarnessConfig Verdict"
    ),
    "content": "File Image Text",
    "events": (
        "AgentEvent ContextCompressedEvent DoneEvent ErrorEvent NoticeEvent PermissionRequestEvent RetryEvent "
        "SignalEvent StreamEvent TextDelta ThinkingDelta ToolCallEvent ToolDeltaEvent ToolDeniedEvent ToolResultEvent "
        "ToolSuspendEvent UsageEvent"
    ),
    "errors": "ConfigError DeepStrikeError ProviderError RunFailed SessionError ToolError",
    "version": "__version__",
}


def test_given_the_package_when_its_public_names_are_listed_then_they_are_these() -> None:
    assert sorted(deepstrike.__all__) == sorted(name for group in NAMES.values() for name in group.split())


@pytest.mark.parametrize("name", deepstrike.__all__)
def test_given_a_public_name_when_it_is_touched_first_in_a_process_then_it_is_there(name: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", f"from deepstrike import {name}"], capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")


def test_given_a_name_that_does_not_exist_when_it_is_touched_then_the_error_names_it() -> None:
    with pytest.raises(AttributeError, match="no attribute 'RuntimeRuner'"):
        deepstrike.RuntimeRuner  # noqa: B018


def test_given_the_package_when_dir_is_asked_then_every_public_name_is_offered() -> None:
    assert set(deepstrike.__all__) <= set(dir(deepstrike))
