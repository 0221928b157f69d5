"""Recorded conversations: what goes back behind a recorded reply is what was recorded next."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded import CASES, Case, Replay, named, provider, replaying
from wires import collect, put_together

from deepstrike.providers.base import Artefact, Memo, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.service import ServiceProvider
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import (
    AssistantBlock,
    AssistantPart,
    CallBlock,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    Turn,
    UserBlock,
)

Json = dict[str, Any]

pytestmark = pytest.mark.skipif(not CASES, reason="no recordings beside the checkout")
replay = pytest.fixture(scope="module")(replaying)


def pairs(protocol: str) -> list[tuple[Case, Case]]:
    """Each recorded turn with the one behind it."""
    by_name = {case.name: case for case in CASES if case.protocol == protocol}
    found = []
    for name, case in by_name.items():
        stem, _, turn = name.rpartition("-t")
        following = by_name.get(f"{stem}-t{int(turn) + 1}") if turn.isdecimal() else None
        if following is not None and case.streamed:
            found.append((case, following))
    return found


def first_of(pair: tuple[Case, Case]) -> str:
    return pair[0].name


def block_of(events: list[ModelEvent], model: ServiceProvider) -> AssistantBlock:
    """What a run keeps of an answer: pieces joined, everything in its order."""
    parts: list[AssistantPart] = []
    for event in events:
        if isinstance(event, TextDelta):
            parts.append(Text(taken(parts, Text) + event.delta))
        elif isinstance(event, ThinkingDelta):
            parts.append(Thinking(taken(parts, Thinking) + event.delta))
        elif isinstance(event, Artefact):
            parts.append(Opaque(event.dialect, event.text))
        elif isinstance(event, ToolCall):
            parts.append(CallBlock(event.id or "call_1", event.name, event.arguments_text))
    return AssistantBlock(tuple(parts), model.dialect, model.info.id)


def taken(parts: list[AssistantPart], kind: type[Text] | type[Thinking]) -> str:
    """The text of the last part, taken out, if it is one of this kind."""
    last = parts[-1] if parts else None
    if not isinstance(last, kind):
        return ""
    del parts[-1]
    return last.text


async def reply(case: Case, request: ModelRequest, replay: Replay) -> AssistantBlock:
    """The block that the recorded answer to this request becomes."""
    model = provider(case, replay.url(case.name), model=case.meta["model"])
    events = await collect(model.stream(request))
    await model.aclose()
    assert case.said_by(put_together(events)) == case.says()
    return block_of(events, model)


def sent_by(case: Case, request: ModelRequest) -> Json:
    """The body that asks for this recording's answer."""
    body: Json = json.loads(provider(case, model=case.meta["model"])._question(request).body)
    return body


def asking(*turns: Turn, system: str = "", tools: tuple[ToolSpec, ...] = (), **extensions: object) -> ModelRequest:
    return ModelRequest(system, "", turns, tools, extensions)


# ---- chat completions


def answer(message: Json) -> Turn:
    """What came back: a tool's result, or the user's next words."""
    content = (Text(message["content"]),)
    return ResultBlock(message["tool_call_id"], "", content) if message["role"] == "tool" else UserBlock(content)


def plain_chat(message: Json) -> Json:
    """A message without what means nothing: null and empty fields, the order of an argument's keys."""
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    fields = {name: value for name, value in message.items() if value and name != "tool_calls"}
    return {**fields, "calls": calls}


@pytest.mark.parametrize("pair", pairs("openai-chat"), ids=first_of)
async def test_given_a_recorded_chat_reply_when_its_tools_have_run_then_the_next_request_is_the_recorded_one(
    pair: tuple[Case, Case], replay: Replay
) -> None:
    case, following = pair
    recorded = following.request["messages"]
    thinks = following.request.get("thinking", {}).get("type") != "disabled"
    extensions: Json = {} if thinks else {"enable_thinking": False}
    goal = UserBlock((Text("goal"),))
    block = await reply(case, asking(goal, **extensions), replay)
    last = max(at for at, message in enumerate(recorded) if message["role"] == "assistant")
    turns = (goal, block, *map(answer, recorded[last + 1 :]))
    sent = sent_by(following, asking(*turns, **extensions))["messages"]
    assert [plain_chat(one) for one in sent[1:]] == [plain_chat(one) for one in recorded[last:]]


# ---- Anthropic's messages


def user_turns(message: Json) -> list[Turn]:
    content = message["content"]
    if isinstance(content, str):
        return [UserBlock((Text(content),))]
    turns: list[Turn] = []
    for block in content:
        if block["type"] == "tool_result":
            inner = block["content"]
            texts = [inner] if isinstance(inner, str) else [one["text"] for one in inner]
            turns.append(ResultBlock(block["tool_use_id"], "", tuple(Text(one) for one in texts)))
        else:
            turns.append(UserBlock((Text(block["text"]),)))
    return turns


def plain_message(message: Json) -> Json:
    """A message in one form: texts as blocks, no breakpoints, no word on who called a tool."""
    content = message["content"]
    kept = []
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        one = {name: value for name, value in block.items() if name not in ("cache_control", "caller")}
        if isinstance(one.get("content"), str):
            one["content"] = [{"type": "text", "text": one["content"]}]
        kept.append(one)
    return {"role": message["role"], "content": kept}


FLOWS = sorted({case.meta["flow"] for case in CASES if case.protocol == "anthropic" and case.meta.get("flow")})


@pytest.mark.parametrize("flow", FLOWS)
async def test_given_a_recorded_conversation_with_claude_when_replayed_then_every_request_is_the_recorded_one(
    flow: str, replay: Replay
) -> None:
    found = [case for case in CASES if case.protocol == "anthropic" and case.meta.get("flow") == flow]
    cases = sorted(found, key=lambda case: int(case.meta["turn"]))
    system = cases[0].request.get("system", "")
    system = system if isinstance(system, str) else system[0]["text"]
    tools = tuple(
        ToolSpec(tool["name"], tool["description"], json.dumps(tool["input_schema"]))
        for tool in cases[0].request.get("tools", ())
    )
    memo, turns = Memo(), list[Turn]()
    for case in cases:
        recorded = case.request["messages"]
        if len(recorded) == 1:  # a conversation that begins anew in every recording
            memo, turns = Memo(), []
        turns += user_turns(recorded[-1])
        request = ModelRequest(system, "", tuple(turns), tools, {}, memo=memo)
        block = await reply(case, request, replay)
        sent = json.loads(b"[%b]" % bytes(memo.body))
        assert list(map(plain_message, sent)) == list(map(plain_message, recorded))
        turns.append(block)


# ---- OpenAI's Responses


def essence(item: Json) -> Json:
    """An item without what clients add or leave out as they like. Recorded clients straighten curly quotes."""
    content = item.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    kept = {key: value for key, value in item.items() if key not in ("id", "status", "type", "content")}
    quotes = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2019": "'"})
    return {**kept, "type": item.get("type", "message"), "content": content.translate(quotes) if content else None}


@pytest.mark.parametrize("pair", pairs("openai-responses"), ids=first_of)
async def test_given_a_recorded_response_when_its_results_go_back_then_the_request_is_the_recorded_one(
    pair: tuple[Case, Case], replay: Replay
) -> None:
    first, second = pair
    recorded, system = second.request["input"], second.request.get("instructions", "")
    goal = UserBlock((Text(essence(recorded[0])["content"]),))
    block = await reply(first, asking(goal, system=system), replay)
    outputs = {item["call_id"]: item["output"] for item in recorded if item.get("type") == "function_call_output"}
    calls = [part for part in block.parts if isinstance(part, CallBlock)]
    results = [ResultBlock(call.id, call.name, (Text(outputs[call.id]),)) for call in calls]
    request = asking(goal, block, *results, system=system)
    sent = sent_by(second, request)
    assert [essence(item) for item in sent["input"]] == [essence(item) for item in recorded]
    assert sent.get("instructions") == second.request.get("instructions")
    await reply(second, request, replay)


# ---- Gemini


def outline(contents: list[Json]) -> list[object]:
    """What two requests must agree in: roles, texts, names and arguments of calls, names of results."""
    return [(content["role"], [trait(part) for part in content["parts"]]) for content in contents]


def trait(part: Json) -> object:
    if "functionCall" in part:
        return (part["functionCall"]["name"], part["functionCall"]["args"], "thoughtSignature" in part)
    if "functionResponse" in part:
        return part["functionResponse"]["name"]
    return (part["text"], bool(part.get("thought")))


@pytest.mark.parametrize("pair", pairs("gemini"), ids=first_of)
async def test_given_a_recorded_gemini_tool_turn_when_its_result_goes_back_then_the_request_is_the_recorded_one(
    pair: tuple[Case, Case], replay: Replay
) -> None:
    first, second = pair
    recorded = second.request["contents"]
    tool = ToolSpec(second.request["tools"][0]["functionDeclarations"][0]["name"], "", '{"type":"object"}')
    goal = UserBlock((Text(recorded[0]["parts"][0]["text"]),))
    block = await reply(first, asking(goal, tools=(tool,)), replay)
    call = next(part for part in block.parts if isinstance(part, CallBlock))
    result = ResultBlock(call.id, call.name, (Text("Mexico"),))
    request = ModelRequest("", "", (goal, block, result), (tool,), {})
    # The turn was made by this model; the second recording names it alike.
    sent = sent_by(first, request)["contents"]
    assert outline(sent) == outline(recorded)
    signature = next(json.loads(part.text)["signature"] for part in block.parts if isinstance(part, Opaque))
    assert sent[1]["parts"][-1]["thoughtSignature"] == signature
    assert json.dumps(signature).encode() in first.body
    await reply(second, request, replay)


# ---- Ollama


async def test_given_a_recorded_ollama_tool_turn_when_its_result_goes_back_then_the_request_is_the_recorded_one(
    replay: Replay,
) -> None:
    first, second = named("ollama/thinking-tool-t1"), named("ollama/thinking-tool-t2")
    messages, offered = second.request["messages"], second.request["tools"]
    function = offered[0]["function"]
    tools = (ToolSpec(function["name"], function["description"], json.dumps(function["parameters"])),)
    system, goal = messages[0]["content"], UserBlock((Text(messages[1]["content"]),))
    block = await reply(first, asking(goal, system=system, tools=tools, enable_thinking=True), replay)
    call = next(part for part in block.parts if isinstance(part, CallBlock))
    result = ResultBlock(call.id, call.name, (Text(messages[3]["content"]),))
    request = asking(goal, block, result, system=system, tools=tools, enable_thinking=True)
    sent = sent_by(second, request)
    del sent["messages"][2]["tool_calls"][0]["id"], sent["messages"][3]["tool_call_id"]  # newer than the recording
    kept = json.loads(json.dumps(messages))
    del kept[2]["tool_calls"][0]["type"]
    assert (sent["messages"], sent["tools"], sent["think"]) == (kept, offered, True)
    assert sent["options"] == {"num_ctx": 32_000}
    await reply(second, request, replay)
