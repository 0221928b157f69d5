"""Recorded answers of Ollama, where the recordings lie beside the checkout."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from gemini_ollama_wires import CUTS, SPLITS, Case, asked, events_of, load, replaying, says
from wires import collect, listen, put_together

from deepstrike.errors import ProviderError, Unauthorized
from deepstrike.providers.base import ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.dialects.ollama.dialect import OllamaDialect
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import ThinkingDelta
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, Thinking, ToolSpec, UserBlock

CASES = load("ollama")
LONG = 20_000
pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")
replay = pytest.fixture(scope="module")(replaying)


def provider(url: str, model: str = "qwen3:4b") -> OllamaProvider:
    retry = RetryConfig(max_retries=0)
    return OllamaProvider(model, url, retry_config=retry, circuit_breaker=CircuitBreaker(retry))


def asking(text: str = "hi") -> ModelRequest:
    return ModelRequest("Be brief.", "", (UserBlock((Text(text),)),), (), {})


@pytest.mark.parametrize("options", SPLITS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_given_a_recorded_ollama_answer_when_it_comes_in_any_pieces_then_it_says_what_was_recorded(
    case: Case, options: dict[str, str], replay: Any
) -> None:
    if len(case.body) > LONG and options.get("chunk") == "1":
        pieces = [case.body[i : i + 1] for i in range(len(case.body))]
        said = put_together(events_of(OllamaDialect(), asked(model="any", source="ollama"), pieces))
    else:
        model = provider(replay.url(case.name, strict=1, **options))
        said = put_together(await collect(model.stream(asking())))
        await model.aclose()
    assert says(said) == case.recorded()


@pytest.mark.parametrize(("cut", "how"), CUTS)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_given_a_recorded_ollama_answer_when_the_connection_is_cut_then_it_is_a_prefix_and_no_call_is_made(
    case: Case, cut: str, how: str, replay: Any
) -> None:
    model = provider(replay.url(case.name, cut=cut, how=how))
    seen: list[ModelEvent] = []
    with pytest.raises(ProviderError) as caught:
        await listen(model.stream(asking()), seen)
    await model.aclose()
    assert caught.value.code in ("truncated", "unreachable")
    said = put_together(seen)
    assert (said.calls, said.finish) == ((), None)
    assert case.expected["text"].startswith(said.text)
    assert case.expected["thinking"].startswith(said.thinking)


async def test_given_a_recorded_cloud_refusal_when_replayed_then_the_key_is_named_as_the_trouble(replay: Any) -> None:
    model = provider(replay.url("ollama/cloud-err-401"))
    with pytest.raises(Unauthorized, match="Unauthorized") as caught:
        await collect(model.stream(asking()))
    assert caught.value.status == 401
    await model.aclose()


async def test_given_a_recorded_ollama_tool_turn_when_its_result_goes_back_then_the_request_is_the_recorded_one(
    replay: Any,
) -> None:
    first, second = (next(case for case in CASES if case.name == f"ollama/thinking-tool-t{turn}") for turn in (1, 2))
    messages = second.request["messages"]
    function = second.request["tools"][0]["function"]
    tool = ToolSpec(function["name"], function["description"], json.dumps(function["parameters"]))
    model = provider(replay.url("flow/ollama/thinking-tool"))
    goal = UserBlock((Text(messages[1]["content"]),))
    extensions = {"enable_thinking": True}
    events = await collect(model.stream(ModelRequest(messages[0]["content"], "", (goal,), (tool,), extensions)))
    call = next(event for event in events if isinstance(event, ToolCall))
    thinking = "".join(event.delta for event in events if isinstance(event, ThinkingDelta))
    block = AssistantBlock((Thinking(thinking), CallBlock(call.id, call.name, call.arguments_text)), "ollama", "any")
    turns = (goal, block, ResultBlock(call.id, call.name, (Text(messages[3]["content"]),)))
    request = ModelRequest(messages[0]["content"], "", turns, (tool,), extensions)
    said = put_together(await collect(model.stream(request)))
    await model.aclose()
    assert says(put_together(events)) == first.recorded()
    assert says(said) == second.recorded()
    with urllib.request.urlopen(f"{replay.root}/_log") as answer:
        sent = json.loads(answer.read())[-1]["json"]
    del sent["messages"][2]["tool_calls"][0]["id"], sent["messages"][3]["tool_call_id"]  # newer than the recording
    del messages[2]["tool_calls"][0]["type"]
    assert (sent["messages"], sent["tools"], sent["think"]) == (messages, second.request["tools"], True)
    assert sent["options"] == {"num_ctx": 32_000}
