"""A session that another process goes on with sends what the first one sent, thinking and signatures included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.base import ToolCall
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.gemini import GeminiProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.testing.renderers import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Spoken
from deepstrike.testing.server import ModelServer, Raw

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.providers.service import ServiceProvider
    from deepstrike.testing.renderers import Renderer

KEY = "sk-test-key-1"
THOUGHT = "Erst 考えて …"
CALLS = Spoken("Let me see.", THOUGHT, (ToolCall("call_1", "stock", '{"sku":"A1"}'),), finish="tool_calls")
Make = tuple["Callable[[str], ServiceProvider]", "Renderer"]
DIALECTS: dict[str, Make] = {
    "anthropic": (lambda url: AnthropicProvider(KEY, base_url=url), MESSAGES),
    "deepseek": (lambda url: DeepSeekProvider(KEY, base_url=url), CHAT),
    "gemini": (lambda url: GeminiProvider(KEY, base_url=url), GEMINI),
    "kimi": (lambda url: KimiProvider(KEY, base_url=url), CHAT),
    "minimax": (lambda url: MiniMaxProvider(KEY, base_url=url), CHAT),
    "ollama": (lambda url: OllamaProvider("qwen3", url), OLLAMA),
    "openai": (lambda url: OpenAIProvider(KEY, "gpt-5.6", api="responses", base_url=url), RESPONSES),
}
# What only these services can read, and must get back as they wrote it.
OPAQUE = {"anthropic": "c2lnbmVk", "gemini": "c2lnbmVk", "openai": "c2VjcmV0"}


@tool
def stock(sku: str) -> str:
    """How many there are."""
    return f"3 of {sku}"


def without_marks(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "cache_control"}


def conversation(body: Any) -> list[Any]:
    """The messages of a request, without its cache marks."""
    found = next(body[name] for name in ("messages", "input", "contents") if name in body)
    unmarked = json.loads(
        json.dumps(found), object_hook=lambda it: {k: v for k, v in it.items() if k != "cache_control"}
    )
    assert isinstance(unmarked, list)
    return unmarked


@pytest.mark.parametrize("expose", [True, False])
@pytest.mark.parametrize("name", DIALECTS)
async def test_given_a_session_in_its_log_when_another_runner_goes_on_then_all_that_was_sent_is_sent_again(
    name: str, expose: bool
) -> None:
    make, renderer = DIALECTS[name]
    log = InMemorySessionLog()
    answers = [
        Raw((*written.opening, *written.ending), headers={"content-type": renderer.content_type})
        for written in map(renderer.answer, (CALLS, Spoken("Three."), Spoken("Still three.")))
    ]
    async with ModelServer(answers, judged=False) as server:
        for goal in ("How many?", "And now?"):
            provider = make(server.base_url)
            plane = LocalExecutionPlane().register(stock)
            runner = RuntimeRunner(RuntimeOptions(provider=provider, session_log=log, execution_plane=plane))
            run = runner.run_streaming(goal, session_id="s", extensions={"expose_reasoning": expose})
            assert [one.status async for one in run if one.type == "done"] == ["completed"]
            await provider.aclose()
        first, second, third = (conversation(request.body) for request in server.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert len(third) == len(second) + 2
    if name in OPAQUE:
        assert OPAQUE[name] in json.dumps(third)
    else:
        assert THOUGHT in json.dumps(third, ensure_ascii=False)
