"""Requests to Gemini: their bytes, what of a history goes back, and how they grow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gemini_ollama_wires import asked
from msgspec.structs import replace

from deepstrike.providers.base import Memo, OutputSchema
from deepstrike.providers.dialects.gemini.dialect import GeminiDialect
from deepstrike.providers.extensions import wire_fields
from deepstrike.providers.gemini import FIELDS
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    File,
    Image,
    Notice,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    UserBlock,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.message import Part, Turn

NEW, OLD = "gemini-3.8-flash", "gemini-2.5-flash"
ADD = ToolSpec(
    "math.add", "Add.", '{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":false}'
)
DIALECT = GeminiDialect()
DROPPED = Notice(
    "artefact_dropped",
    "thinking and signatures of replies by another model were left out of the prompt: Gemini takes back only what the "
    "same model wrote",
)


def user(*parts: Part) -> UserBlock:
    return UserBlock(parts or (Text("hi"),))


def reply(*parts: Any, dialect: str = "gemini", model: str = NEW) -> AssistantBlock:
    return AssistantBlock(parts, dialect, model)


def fc(call_id: str = "c1", name: str = "f", args: str = '{"x": 1}') -> CallBlock:
    return CallBlock(call_id, name, args)


def mark(on: str, signature: str, chars: int = 0) -> Opaque:
    return Opaque("gemini", f'{{"on":"{on}","chars":{chars},"signature":"{signature}"}}')


def result(call_id: str, *parts: Part, error: bool = False) -> ResultBlock:
    return ResultBlock(call_id, "f", parts, error)


def body(turns: Sequence[Turn] = (user(),), *, model: str = NEW, **more: Any) -> dict[str, Any]:
    more.setdefault("extensions", {"expose_reasoning": False})
    more["fields"] = wire_fields({**more["extensions"], **more.get("fields", {})}, FIELDS)
    found: dict[str, Any] = json.loads(DIALECT.encode(asked(turns, model=model, source="gemini", **more)))
    return found


def parts_of(block: AssistantBlock, *, model: str = NEW) -> Any:
    return body([user(), block], model=model)["contents"][1]["parts"]


def settings(*, model: str = NEW, **extensions: object) -> Any:
    return body(model=model, extensions=extensions)["generationConfig"]


def test_given_a_request_of_everything_when_encoded_then_these_are_its_bytes() -> None:
    turns = (
        user(Text("17 + 28?")),
        reply(Thinking("hm"), Text("Let me add."), mark("call", "s\\/1"), fc("c1", "math.add"), fc("c2", args="{}")),
        ResultBlock("c1", "math.add", (Text("45"),)),
        result("c2", Text("no such thing"), error=True),
    )
    extensions = {"temperature": 0.5, "stop": "END", "tool_choice": "required", "expose_reasoning": False}
    sent = DIALECT.encode(
        asked(
            turns,
            model=NEW,
            source="gemini",
            stable="Be brief.",
            knowledge="Facts.",
            tools=(ADD,),
            fields=wire_fields(extensions, FIELDS),
            extensions=extensions,
            limit=100,
        )
    )
    from deepstrike.providers.dialects.names import wire_name

    name = wire_name("math.add").encode()
    assert sent == (
        b'{"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},'
        b'"systemInstruction":{"parts":[{"text":"Be brief."},{"text":"Facts."}]},'
        b'"tools":[{"functionDeclarations":[{"name":"' + name + b'","description":"Add.","parametersJsonSchema":'
        b'{"additionalProperties":false,"properties":{"x":{"type":"integer"}},"type":"object"}}]}],'
        b'"contents":[{"role":"user","parts":[{"text":"17 + 28?"}]},'
        b'{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Let me add."},'
        b'{"functionCall":{"id":"c1","name":"' + name + b'","args":{"x": 1}},"thoughtSignature":"s\\/1"},'
        b'{"functionCall":{"id":"c2","name":"f","args":{}}}]},'
        b'{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"' + name + b'","response":{"output":"45"}}},'
        b'{"functionResponse":{"id":"c2","name":"f","response":{"error":"no such thing"}}}]}],'
        b'"generationConfig":{"stopSequences":["END"],"temperature":0.5,"maxOutputTokens":100}}'
    )


def test_given_signatures_when_the_reply_goes_back_then_each_is_on_its_own_part_and_signed_text_stays_apart() -> None:
    block = reply(
        Text("Let me see."), mark("text", "s1", 4), Text(" So."), mark("text", "s2"), mark("call", "s3"), fc()
    )
    assert parts_of(block) == [
        {"text": "Let me "},
        {"text": "see.", "thoughtSignature": "s1"},
        {"text": " So."},
        {"text": "", "thoughtSignature": "s2"},
        {"functionCall": {"id": "c1", "name": "f", "args": {"x": 1}}, "thoughtSignature": "s3"},
    ]


def test_given_a_reply_behind_a_rewrite_when_it_goes_back_then_only_the_signature_of_its_call_does() -> None:
    block = reply(Text("Let me see."), mark("text", "s1", 4), mark("call", "s3"), fc())
    assert parts_of(replace(block, rebased=True)) == [
        {"text": "Let me see."},
        {"functionCall": {"id": "c1", "name": "f", "args": {"x": 1}}, "thoughtSignature": "s3"},
    ]


def test_given_a_signed_thought_when_the_reply_goes_back_then_it_is_a_thought_with_its_signature() -> None:
    block = reply(Thinking("ab"), mark("thought", "s", 2), Text("yes"))
    assert parts_of(block) == [{"text": "ab", "thought": True, "thoughtSignature": "s"}, {"text": "yes"}]


@pytest.mark.parametrize(
    "block",
    [
        reply(Thinking("hm"), Text("a"), mark("call", "s"), fc("c1"), fc("c2"), model="gemini-3-pro-preview"),
        reply(Thinking("hm"), Text("a"), Opaque("anthropic", "{}"), fc("c1"), fc("c2"), dialect="anthropic"),
    ],
    ids=["another model", "another vendor"],
)
def test_given_a_foreign_reply_when_it_goes_back_then_its_first_call_gets_the_value_that_skips_the_check(
    block: AssistantBlock,
) -> None:
    memo = Memo()
    contents = body([user(), block], memo=memo)["contents"]
    assert contents[1]["parts"] == [
        {"text": "a"},
        {
            "functionCall": {"id": "c1", "name": "f", "args": {"x": 1}},
            "thoughtSignature": "skip_thought_signature_validator",
        },
        {"functionCall": {"id": "c2", "name": "f", "args": {"x": 1}}},
    ]
    assert memo.notices == [DROPPED]


def test_given_a_shortened_reply_of_our_own_when_it_goes_back_then_the_check_is_skipped_without_a_notice() -> None:
    memo = Memo()
    contents = body([user(), reply(fc())], memo=memo)["contents"]
    assert contents[1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert memo.notices == []


def test_given_a_model_before_gemini_3_when_a_call_has_no_signature_then_none_is_made_up() -> None:
    assert parts_of(reply(fc(), model=OLD), model=OLD) == [
        {"functionCall": {"id": "c1", "name": "f", "args": {"x": 1}}}
    ]


def test_given_a_signature_without_its_part_when_the_reply_goes_back_then_it_is_left_out() -> None:
    assert parts_of(reply(Text("a"), mark("text", "s", 9), mark("call", "t"), Opaque("gemini", "broken"))) == [
        {"text": "a"}
    ]


def test_given_a_reply_with_neither_text_nor_calls_when_encoded_then_it_is_left_out() -> None:
    contents = body([user(), reply(Thinking("hm"), mark("text", "s")), user(Text("on"))])["contents"]
    assert [content["role"] for content in contents] == ["user", "user"]


def test_given_images_and_files_when_encoded_then_they_are_parts_and_those_of_results_follow_behind_all_results() -> (
    None
):
    png = Image("image/png", "QUJD")
    turns: list[Turn] = [
        user(Text("see"), png, Image(url="https://x.test/a.png"), File("application/pdf", "QUJD", "a.pdf")),
        reply(mark("call", "s"), fc("c1"), fc("c2")),
        result("c1", Text("here"), png),
        result("c2", Text("ok")),
    ]
    contents = body(turns, model=OLD)["contents"]
    inline = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    assert contents[0]["parts"] == [
        {"text": "see"},
        inline,
        {"fileData": {"fileUri": "https://x.test/a.png"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}},
    ]
    responses = [part["functionResponse"]["response"] for part in contents[2]["parts"]]
    assert responses == [{"output": "here\n[the attachments of f follow]"}, {"output": "ok"}]
    assert contents[3] == {"role": "user", "parts": [inline]}


def test_given_media_of_a_result_when_the_model_takes_them_inside_it_then_only_the_others_follow() -> None:
    png, gif = Image("image/png", "QUJD"), Image("image/gif", "R0lG")
    turns: list[Turn] = [
        user(),
        reply(mark("call", "s"), fc("c1"), fc("c2")),
        result("c1", png),
        result("c2", Text("two"), png, gif),
    ]
    first, second = (part["functionResponse"] for part in body(turns)["contents"][2]["parts"])
    inline = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    assert (first["response"], first["parts"]) == ({"output": ""}, [inline])
    assert (second["response"], second["parts"]) == ({"output": "two\n[the attachments of f follow]"}, [inline])
    assert body(turns)["contents"][3]["parts"] == [{"inlineData": {"mimeType": "image/gif", "data": "R0lG"}}]


def test_given_a_growing_history_when_encoded_then_only_new_turns_are_written_and_old_bytes_stay() -> None:
    memo = Memo()
    turns: list[Turn] = [user()]
    first = DIALECT.encode(asked(turns, model=NEW, source="gemini", memo=memo, limit=7))
    kept = bytes(memo.body)
    turns += [reply(mark("call", "s"), fc()), result("c1", Text("1"))]
    second = DIALECT.encode(asked(turns, model=NEW, source="gemini", memo=memo))
    assert memo.body.startswith(kept)
    assert first.partition(b'],"generationConfig"')[0] == second[: len(first.partition(b'],"generationConfig"')[0])]
    assert second == DIALECT.encode(asked(turns, model=NEW, source="gemini"))
    assert (b'"maxOutputTokens":7' in first, b"maxOutputTokens" in second) == (True, False)


@pytest.mark.parametrize(
    ("model", "extensions", "config"),
    [
        (NEW, {}, {"includeThoughts": True}),
        (NEW, {"expose_reasoning": False}, None),
        (NEW, {"reasoning_effort": "none"}, {"thinkingLevel": "minimal", "includeThoughts": True}),
        (NEW, {"enable_thinking": False}, {"thinkingLevel": "minimal", "includeThoughts": True}),
        (NEW, {"thinking_budget": 99}, {"thinkingBudget": 99, "includeThoughts": True}),
        ("gemini-4-argon", {"reasoning_effort": "minimal"}, {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-4-argon", {"reasoning_effort": "xhigh"}, {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-4-argon", {"thinking_level": "LOW"}, {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("gemini-3-pro-preview", {"reasoning_effort": "medium"}, {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-flash-latest", {"reasoning_effort": "medium"}, {"thinkingLevel": "medium", "includeThoughts": True}),
        (OLD, {"enable_thinking": False}, {"thinkingBudget": 0}),
        (OLD, {"enable_thinking": True}, {"thinkingBudget": -1, "includeThoughts": True}),
        (OLD, {"reasoning_effort": "medium"}, {"thinkingBudget": 8192, "includeThoughts": True}),
        (OLD, {"thinking_budget": 512, "expose_reasoning": False}, {"thinkingBudget": 512}),
        ("gemini-2.5-pro", {"enable_thinking": False}, {"thinkingBudget": 128, "includeThoughts": True}),
        ("gemini-2.5-flash-lite", {}, None),
        ("gemini-2.5-flash-lite", {"enable_thinking": True}, {"thinkingBudget": -1, "includeThoughts": True}),
        ("gemini-2.0-flash", {"enable_thinking": True}, None),
        ("gemma-4-27b-it", {}, None),
    ],
)
def test_given_a_wish_to_think_when_encoded_then_it_is_said_in_the_words_of_the_models_generation(
    model: str, extensions: dict[str, object], config: dict[str, object] | None
) -> None:
    assert settings(model=model, **extensions).get("thinkingConfig") == config


def test_given_settings_when_encoded_then_they_stand_where_the_service_wants_them_and_extra_body_wins() -> None:
    given = {
        "top_p": 0.9,
        "top_k": 40,
        "seed": 7,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stop": ["A", "B"],
        "expose_reasoning": False,
        "safety_settings": [{"category": "X"}],
        "cached_content": "cachedContents/1",
        "extra_body": {"generationConfig": {"seed": 8, "maxOutputTokens": 5}, "labels": {"a": "b"}},
    }
    sent = body(extensions=given, limit=100)
    assert sent["generationConfig"] == {
        "topP": 0.9,
        "topK": 40,
        "seed": 8,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "stopSequences": ["A", "B"],
        "maxOutputTokens": 5,
    }
    assert (sent["safetySettings"], sent["cachedContent"], sent["labels"]) == (
        [{"category": "X"}],
        "cachedContents/1",
        {"a": "b"},
    )


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("f", {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        ({"type": "function", "function": {"name": "f"}}, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        ({"mode": "VALIDATED"}, {"mode": "VALIDATED"}),
    ],
)
def test_given_a_tool_choice_when_encoded_then_it_is_a_calling_config(choice: object, config: object) -> None:
    assert body(extensions={"tool_choice": choice})["toolConfig"] == {"functionCallingConfig": config}


def test_given_a_wanted_form_when_encoded_then_it_is_a_schema_where_the_model_takes_one_beside_tools() -> None:
    form = OutputSchema("sum", '{"type":"object","properties":{"n":{"type":"integer"}}}')
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    wanted = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert body(output=form)["generationConfig"] == wanted
    assert body(output=form, tools=(ADD,))["generationConfig"] == wanted
    assert body(output=form, model=OLD)["generationConfig"] == wanted
    sent = body(output=form, model=OLD, tools=(ADD,), stable="Be brief.")
    assert sent["generationConfig"] == {}
    assert [part["text"] for part in sent["systemInstruction"]["parts"]] == [
        "Be brief.",
        f"Give your final answer as JSON only, without any other words, in the form of this schema: {form.schema}",
    ]


def test_given_a_model_when_asked_for_the_path_then_it_stands_in_it() -> None:
    assert DIALECT.path("gemini-3.8-flash") == "/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert DIALECT.path("tunedModels/mine") == "/tunedModels/mine:streamGenerateContent?alt=sse"
    assert DIALECT.path("a?b#c") == "/models/a%3Fb%23c:streamGenerateContent?alt=sse"
