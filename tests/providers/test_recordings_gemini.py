"""Recorded answers of Gemini, where the recordings lie beside the checkout."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from gemini_ollama_wires import CUTS, SPLITS, Case, load, replaying, says
from wires import collect, listen, put_together

from deepstrike.errors import BadRequest, ProviderError
from deepstrike.providers.base import Artefact, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.gemini import GeminiProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    UserBlock,
)

CASES = load("gemini")
STREAMS = [case for case in CASES if case.expected["kind"] == "ok"]
FLOWS = ["g3-signature-tool", "thinking-tool"]
pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")
replay = pytest.fixture(scope="module")(replaying)


def provider(url: str, model: str = "gemini-2.5-flash") -> GeminiProvider:
    retry = RetryConfig(max_retries=0)
    return GeminiProvider(
        "replay-key-0123", model, base_url=f"{url}/v1beta", retry_config=retry, circuit_breaker=CircuitBreaker(retry)
    )


def asking(text: str = "hi") -> ModelRequest:
    return ModelRequest("Be brief.", "", (UserBlock((Text(text),)),), (), {})


@pytest.mark.parametrize("options", SPLITS, ids=str)
@pytest.mark.parametrize("case", STREAMS, ids=str)
async def test_given_a_recorded_gemini_answer_when_it_comes_in_any_pieces_then_it_says_what_was_recorded(
    case: Case, options: dict[str, str], replay: Any
) -> None:
    model = provider(replay.url(case.name, strict=1, **options))
    said = put_together(await collect(model.stream(asking())))
    await model.aclose()
    assert says(said) == case.recorded()


@pytest.mark.parametrize(("cut", "how"), CUTS)
@pytest.mark.parametrize("case", STREAMS, ids=str)
async def test_given_a_recorded_gemini_answer_when_the_connection_is_cut_then_it_is_a_prefix_and_no_call_is_made(
    case: Case, cut: str, how: str, replay: Any
) -> None:
    model = provider(replay.url(case.name, cut=cut, how=how))
    seen: list[ModelEvent] = []
    if case.whole_at(cut, b'"finishReason"'):
        await listen(model.stream(asking()), seen)
        assert says(put_together(seen))["finish"] == case.expected["finish_reason"]
    else:
        with pytest.raises(ProviderError) as caught:
            await listen(model.stream(asking()), seen)
        assert caught.value.code in ("truncated", "unreachable")
        said = put_together(seen)
        assert (said.calls, said.finish) == ((), None)
        assert case.expected["text"].startswith(said.text)
        assert case.expected["thinking"].startswith(said.thinking)
    await model.aclose()


async def test_given_a_recorded_gemini_refusal_when_replayed_then_it_is_a_bad_request_in_the_services_words(
    replay: Any,
) -> None:
    model = provider(replay.url("gemini/err-404-model"))
    with pytest.raises(BadRequest, match="is not found for API version v1beta") as caught:
        await collect(model.stream(asking()))
    assert (caught.value.status, caught.value.retryable) == (404, False)
    await model.aclose()


@pytest.mark.parametrize("flow", FLOWS)
async def test_given_a_recorded_gemini_tool_turn_when_its_result_goes_back_then_the_request_is_the_recorded_one(
    flow: str, replay: Any
) -> None:
    first, second = (next(case for case in CASES if case.name == f"gemini/{flow}-t{turn}") for turn in (1, 2))
    recorded = second.request
    tool = ToolSpec(recorded["tools"][0]["functionDeclarations"][0]["name"], "", '{"type":"object"}')
    model = provider(replay.url(f"flow/gemini/{flow}"), first.meta["model"])
    goal = UserBlock((Text(recorded["contents"][0]["parts"][0]["text"]),))
    events = await collect(model.stream(ModelRequest("", "", (goal,), (tool,), {})))
    block = block_of(events, model)
    call = next(part for part in block.parts if isinstance(part, CallBlock))
    turns = (goal, block, ResultBlock(call.id, call.name, (Text("Mexico"),)))
    said = put_together(await collect(model.stream(ModelRequest("", "", turns, (tool,), {}))))
    await model.aclose()
    assert says(said) == second.recorded()
    sent = last_request(replay.root)
    assert outline(sent["contents"]) == outline(recorded["contents"])
    signature = next(iter(json.loads(part.text)["signature"] for part in block.parts if isinstance(part, Opaque)))
    assert sent["contents"][1]["parts"][-1]["thoughtSignature"] == signature
    assert json.dumps(signature).encode() in first.body


def block_of(events: list[ModelEvent], model: GeminiProvider) -> AssistantBlock:
    """The reply as the kernel renders it."""
    parts: list[Text | Thinking | Opaque | CallBlock] = []
    for event in events:
        if isinstance(event, ThinkingDelta):
            parts.append(Thinking(event.delta))
        elif isinstance(event, TextDelta):
            parts.append(Text(event.delta))
        elif isinstance(event, Artefact):
            parts.append(Opaque(event.dialect, event.text))
        elif isinstance(event, ToolCall):
            parts.append(CallBlock(event.id or "call_1", event.name, event.arguments_text))
    thoughts = "".join(part.text for part in parts if isinstance(part, Thinking))
    rest = [part for part in parts if not isinstance(part, Thinking)]
    return AssistantBlock((*([Thinking(thoughts)] if thoughts else []), *rest), model.dialect, model.info.id)


def last_request(root: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{root}/_log") as answer:
        found: dict[str, Any] = json.loads(answer.read())[-1]["json"]
        return found


def outline(contents: list[dict[str, Any]]) -> list[object]:
    """What two requests must agree in: roles, texts, names and arguments of calls, names of results."""
    return [(content["role"], [trait(part) for part in content["parts"]]) for content in contents]


def trait(part: dict[str, Any]) -> object:
    if "functionCall" in part:
        return (part["functionCall"]["name"], part["functionCall"]["args"], "thoughtSignature" in part)
    if "functionResponse" in part:
        return part["functionResponse"]["name"]
    return (part["text"], bool(part.get("thought")))
