"""Requests of the Responses dialect: their bytes, and how they grow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from responses_wires import (
    SOURCE,
    called_in_pieces,
    compact,
    completed,
    decode,
    decode_pieces,
    done,
    function_call,
    message,
    reasoning,
    said_in_pieces,
)

from deepstrike.providers.base import Artefact, Finish, Memo, ModelInfo, ModelRequest, OutputSchema, ToolCall
from deepstrike.providers.dialects.base import Asked
from deepstrike.providers.dialects.responses.dialect import BREAKPOINTS, ResponsesDialect
from deepstrike.providers.dialects.strict import is_strict
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.stream import TextDelta, ThinkingDelta
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
    from collections.abc import Mapping, Sequence

    from deepstrike.wire.message import AssistantPart, Turn

MODEL = "gpt-5.6"
ADD = ToolSpec("add", "Add.", '{"type":"object","properties":{"y":{"type":"integer"},"x":{"type":"integer"}}}')
PNG = Image("image/png", "QUJD")
HI = UserBlock((Text("hi"),))


def body_of(
    turns: Sequence[Turn] = (HI,),
    *,
    memo: Memo | None = None,
    stable: str = "",
    knowledge: str = "",
    tools: tuple[ToolSpec, ...] = (),
    fields: Mapping[str, object] | None = None,
    limit: int | None = None,
    output: OutputSchema | None = None,
    strict: bool = False,
    reasons: bool = True,
) -> bytes:
    extensions = {"strict_tools": True} if strict else {}
    request = ModelRequest(stable, knowledge, turns, tools, extensions, memo=memo or Memo(), output=output)
    info = ModelInfo(MODEL, reasoning=reasons)
    return ResponsesDialect().encode(Asked(request, info, SOURCE, fields or {}, limit, Faults(Mask([]))))


def items_of(*turns: Turn, memo: Memo | None = None) -> list[object]:
    items = json.loads(body_of(turns, memo=memo))["input"]
    assert isinstance(items, list)
    return items


def block_of(body: bytes, model: str = MODEL, dialect: str = SOURCE) -> AssistantBlock:
    """The block that an answer becomes, as the host puts it together."""
    parts: list[AssistantPart] = []
    for event in decode_pieces([body]):
        if isinstance(event, TextDelta | ThinkingDelta):
            kind = Text if isinstance(event, TextDelta) else Thinking
            if parts and isinstance(parts[-1], kind):
                parts[-1] = kind(parts[-1].text + event.delta)
            else:
                parts.append(kind(event.delta))
        elif isinstance(event, ToolCall):
            parts.append(CallBlock(event.id, event.name, event.arguments_text))
        elif isinstance(event, Artefact):
            parts.append(Opaque(event.dialect, event.text))
    return AssistantBlock(tuple(parts), dialect, model)


def without_logprobs(item: dict[str, object]) -> dict[str, object]:
    text: str = json.dumps(item).replace('"logprobs": [], ', "")
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def test_given_slots_tools_and_fields_when_encoded_then_each_stands_in_its_place() -> None:
    body = body_of(stable="Be brief.", knowledge="Facts.", tools=(ADD,), fields={"metadata": {"b": 1}}, limit=50)
    assert json.loads(body) == {
        "model": MODEL,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "metadata": {"b": 1},
        "tools": [
            {
                "type": "function",
                "name": "add",
                "description": "Add.",
                "parameters": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
                "strict": False,
            }
        ],
        "instructions": "Be brief.",
        "input": [{"role": "developer", "content": "Facts."}, {"role": "user", "content": "hi"}],
        "max_output_tokens": 50,
    }


def test_given_a_model_that_does_not_reason_when_encoded_then_no_encrypted_reasoning_is_asked_for() -> None:
    assert json.loads(body_of(reasons=False)) == {
        "model": MODEL,
        "stream": True,
        "store": False,
        "input": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.parametrize(
    ("stable", "knowledge", "plain"), [("S", "K", ["S"]), ("S", "", []), ("", "K", []), ("", "", None)]
)
def test_given_a_model_that_caches_by_marked_places_when_encoded_then_the_end_of_its_slots_is_marked(
    stable: str, knowledge: str, plain: list[str] | None
) -> None:
    request = ModelRequest(stable, knowledge, (HI,), (ADD,), {})
    info = ModelInfo(MODEL, reasoning=True, traits=frozenset({BREAKPOINTS}))
    asked = Asked(request, info, SOURCE, {}, None, Faults(Mask([])))
    body = json.loads(ResponsesDialect().encode(asked))
    part = {"type": "input_text", "text": knowledge or stable, "prompt_cache_breakpoint": {"mode": "explicit"}}
    expected: list[object] = [{"role": "developer", "content": text} for text in plain or []]
    if plain is not None:
        expected.append({"role": "developer", "content": [part]})
    assert body["input"] == [*expected, {"role": "user", "content": "hi"}]
    assert "instructions" not in body
    elsewhere = Asked(replace(request, memo=Memo()), info, SOURCE, {}, None, Faults(Mask([])), own_address=False)
    assert b"prompt_cache_breakpoint" not in ResponsesDialect().encode(elsewhere)


def test_given_a_limit_below_the_services_least_when_encoded_then_it_is_raised_to_it() -> None:
    assert json.loads(body_of(limit=3))["max_output_tokens"] == 16


def test_given_images_and_files_when_encoded_then_users_and_results_carry_them() -> None:
    photo, paper = Image(url="https://x.test/a.png"), File("application/pdf", "UERG", "a.pdf")
    call = AssistantBlock((CallBlock("c", "look", "{}"),))
    items = items_of(UserBlock((Text("see"), PNG, photo)), call, ResultBlock("c", "look", (Text("it"), paper, PNG)))
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    file = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}
    text = {"type": "input_text", "text": "see"}
    assert items[0] == {
        "role": "user",
        "content": [text, image, {"type": "input_image", "image_url": "https://x.test/a.png"}],
    }
    assert items[2] == {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": "it"}, file, image],
    }


def test_given_an_answer_with_everything_when_replayed_then_its_items_come_back_in_order() -> None:
    secret = reasoning("rs_0", "gAA\u00e9", "Hm.")
    other = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}}
    said = message("Grüße 🌍!", "msg_2", phase="commentary")
    call = function_call("add", '{"x": 1,"y":2}', "call_a", "fc_3")
    stream = b"".join(
        (
            done(0, secret),
            done(1, other),
            said_in_pieces(2, "Grüße 🌍!", phase="commentary"),
            done(3, call),
            completed(),
        )
    )
    block = block_of(stream)
    assert [type(part) for part in block.parts] == [Thinking, Opaque, Opaque, Text, Opaque, CallBlock, Opaque]
    items = items_of(HI, block, ResultBlock("call_a", "add", (Text("3"),)))
    assert items[1:] == [
        secret,
        other,
        without_logprobs(said),
        call,
        {"type": "function_call_output", "call_id": "call_a", "output": "3"},
    ]
    raw = body_of((HI, block))
    assert compact(secret).encode() in raw, "reasoning goes back byte by byte"


def test_given_a_message_of_several_parts_when_replayed_then_each_has_its_text() -> None:
    parts = [
        {"type": "output_text", "annotations": [{"type": "url_citation", "url": "u"}], "text": "One. "},
        {"type": "refusal", "refusal": "Not two."},
        {"type": "output_text", "annotations": [], "text": ""},
    ]
    item = {**message(""), "content": parts}
    assert items_of(block_of(done(0, item) + completed())) == [item]


def test_given_a_text_that_was_shortened_since_when_replayed_then_it_goes_without_its_frame() -> None:
    block = block_of(done(0, reasoning()) + said_in_pieces(1, "A long text.", phase="final_answer") + completed())
    parts = tuple(Text("A long…") if isinstance(part, Text) else part for part in block.parts)
    assert items_of(AssistantBlock(parts, SOURCE, MODEL)) == [
        reasoning(),
        {"role": "assistant", "content": "A long…", "phase": "final_answer"},
    ]


def test_given_arguments_and_ids_that_changed_since_when_replayed_then_they_are_the_logs() -> None:
    block = block_of(done(0, reasoning()) + called_in_pieces(1, "add", '{"x":1}', "call_a") + completed())
    parts = tuple(CallBlock("c7", "math.add", "{}") if isinstance(part, CallBlock) else part for part in block.parts)
    name = json.loads(body_of(tools=(ToolSpec("math.add", "", "{}"),)))["tools"][0]["name"]
    assert items_of(AssistantBlock(parts, SOURCE, MODEL)) == [reasoning(), function_call(name, "{}", "c7", "fc_1")]


def test_given_a_call_that_was_taken_out_when_replayed_then_its_reasoning_goes_with_it() -> None:
    block = block_of(done(0, reasoning()) + called_in_pieces(1, "add", "{}") + completed())
    parts = tuple(part for part in block.parts if not isinstance(part, CallBlock))
    memo = Memo()
    assert items_of(HI, AssistantBlock(parts, SOURCE, MODEL), HI, memo=memo) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "hi"},
    ]
    assert memo.notices == [
        Notice("artefact_dropped", "reasoning is not sent: the item that it led to is no longer there")
    ]


@pytest.mark.parametrize(("model", "dialect"), [("gpt-6-sol", SOURCE), (MODEL, "anthropic")])
def test_given_the_reply_of_another_model_or_service_when_replayed_then_only_text_and_calls_are_sent(
    model: str, dialect: str
) -> None:
    stream = done(0, reasoning()) + said_in_pieces(1, "So.") + called_in_pieces(2, "add", "{}") + completed()
    memo = Memo()
    assert items_of(block_of(stream, model, dialect), memo=memo) == [
        {"role": "assistant", "content": "So."},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"},
    ]
    words = f"reasoning of {model} ({dialect}) is not sent: only the model that wrote it can read it"
    assert memo.notices == [Notice("artefact_dropped", words)]


def test_given_a_cut_reply_or_an_empty_one_when_replayed_then_its_text_is_sent_and_nothing_for_none() -> None:
    assert items_of(HI, AssistantBlock((Text("so f"),)), HI, AssistantBlock(()), AssistantBlock((Thinking("x"),))) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "so f"},
        {"role": "user", "content": "hi"},
    ]


def test_given_ids_that_the_service_refuses_when_encoded_then_call_and_result_have_the_same_other_one() -> None:
    ids = ["x" * 65, "x" * 66, "", "a\nb", "functions.add:0", "y" * 64]
    wired = []
    for call_id in ids:
        call, result = items_of(
            AssistantBlock((CallBlock(call_id, "f", "{}"),)), ResultBlock(call_id, "f", (Text("r"),))
        )
        assert isinstance(call, dict)
        assert isinstance(result, dict)
        assert call["call_id"] == result["call_id"]
        wired.append(call["call_id"])
    assert len(set(wired)) == len(ids)
    assert all(0 < len(one) <= 64 and one.isprintable() for one in wired)
    assert wired[-2:] == ids[-2:]


def test_given_an_output_schema_when_encoded_then_it_is_the_text_format_beside_other_fields() -> None:
    loose = OutputSchema("Book", '{"type":"object","additionalProperties":{"type":"string"}}')
    fields = {"text": {"verbosity": "low", "format": {"type": "text"}}}
    form = {"type": "json_schema", "name": "Book", "schema": json.loads(loose.schema), "strict": False}
    assert json.loads(body_of(output=loose, fields=fields))["text"] == {"verbosity": "low", "format": form | {}}
    tight = OutputSchema("N", '{"type":"object","properties":{},"required":[],"additionalProperties":false}')
    assert json.loads(body_of(output=tight))["text"]["format"]["strict"] is True


STRICT = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'


def test_given_an_output_schema_when_encoded_then_its_keys_keep_their_order() -> None:
    schema = (
        '{"type":"object","properties":{"why":{"type":"string"},"answer":{"type":"integer",'
        '"const":12345678901234567890123}},"required":["why","answer"],"additionalProperties":false}'
    )
    assert schema.encode() in body_of(output=OutputSchema("n", schema))


def test_given_fields_of_tools_when_no_tools_are_offered_then_they_are_not_sent() -> None:
    fields = {"tool_choice": "required", "parallel_tool_calls": False, "user": "u"}
    assert json.loads(body_of(fields=fields)).keys() - json.loads(body_of()).keys() == {"user"}
    assert json.loads(body_of(fields=fields, tools=(ADD,)))["tool_choice"] == "required"


def test_given_strict_tools_when_asked_for_then_only_schemas_that_fit_are_strict() -> None:
    free = ToolSpec("free", "", '{"type":"object","additionalProperties":{"type":"string"}}')
    tools = (ADD, ToolSpec("tight", "", STRICT), free)
    sent = json.loads(body_of(tools=tools, strict=True))["tools"]
    assert [tool["strict"] for tool in sent] == [True, True, False]
    assert sent[0]["parameters"]["required"] == ["y", "x"]
    assert sent[2]["parameters"] == json.loads(free.parameters)
    assert [tool["strict"] for tool in json.loads(body_of(tools=tools))["tools"]] == [False, False, False]


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        (STRICT, True),
        ('{"type":"object","properties":{"a":{}},"required":[],"additionalProperties":false}', False),
        ('{"type":"object","properties":{"a":{}},"required":["a"]}', False),
        ('{"type":"object"}', False),
        ('{"type":["object","null"]}', False),
        ('{"type":"object","additionalProperties":false}', True),
        ('{"type":"array","items":{"type":"object"}}', False),
        ('{"anyOf":[{"type":"object"},{"type":"null"}]}', False),
        ('{"$defs":{"d":{"type":"object"}},"type":"string"}', False),
        ('{"type":"string","not":{"const":"x"}}', False),
        ('{"type":"string"}', True),
    ],
)
def test_given_a_schema_when_asked_whether_strict_mode_takes_it_then_every_object_in_it_counts(
    schema: str, fits: bool
) -> None:
    inner = json.loads(schema)
    around = {"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": False}
    assert is_strict(around) is fits
    assert is_strict(inner) is (fits and inner["type"] == "object")
    assert not is_strict(True)


def test_given_lone_surrogates_when_encoded_then_the_body_is_strict_utf8_json() -> None:
    block = AssistantBlock((Text("a\ud800"), CallBlock("c\udfff", "f", '{"x":"\udc00"}')), SOURCE, MODEL)
    body = json.loads(body_of((UserBlock((Text("caf\udce9"),)), block), stable="\udc00").decode("utf-8"))
    assert body["instructions"] == "\ufffd"
    assert body["input"][1] == {"role": "assistant", "content": "a\ufffd"}


def test_given_a_memo_when_turns_are_added_then_only_they_are_encoded() -> None:
    memo = Memo()
    before = body_of((HI,), memo=memo)
    after = body_of((UserBlock((Text("changed"),)), AssistantBlock((Text("b"),))), memo=memo)
    assert after == before.removesuffix(b"]}") + b',{"role":"assistant","content":"b"}]}'


def test_given_no_turns_when_encoded_then_the_body_is_still_json() -> None:
    assert json.loads(body_of((), knowledge="k"))["input"] == [{"role": "developer", "content": "k"}]
    assert json.loads(body_of(()))["input"] == []


_steps = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.booleans(), st.sampled_from([MODEL, "o3"])), max_size=6
)


def step(at: int, calls: int, thinks: bool, speaks: bool, model: str) -> list[Turn]:
    """A reply that thinks, speaks and calls, and what comes behind it."""
    pieces = [done(0, reasoning(f"rs_{at}"))] if thinks else []
    if speaks or not calls:
        pieces.append(said_in_pieces(1, f"text {at}"))
    pieces += [called_in_pieces(2 + n, "f", "{}", f"c{at}_{n}") for n in range(calls)]
    block = block_of(b"".join([*pieces, completed()]), model)
    return [block, *(ResultBlock(f"c{at}_{n}", "f", (Text("r"), PNG)) for n in range(calls)), HI]


def ill_paired(items: Sequence[Mapping[str, object]]) -> list[object]:
    """The items that break a rule of the service."""
    open_calls, wrong, thinking = list[object](), list[object](), False
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            wrong += [] if item["call_id"] in open_calls else [item]
            open_calls = [one for one in open_calls if one != item["call_id"]]
        elif kind == "function_call":
            open_calls.append(item["call_id"])
        if thinking and item.get("role") == "user":
            wrong.append(item)
        thinking = kind == "reasoning"
    return wrong + open_calls + ([items[-1]] if thinking else [])


@settings(max_examples=100, deadline=None)
@given(_steps)
def test_given_a_growing_history_when_encoded_step_by_step_then_each_request_begins_with_the_one_before(
    shape: list[tuple[int, bool, bool, str]],
) -> None:
    memo, turns, before = Memo(), list["Turn"]([HI]), body_of((HI,), stable="s", tools=(ADD,))
    for at, (calls, thinks, speaks, model) in enumerate(shape):
        turns += step(at, calls, thinks, speaks, model)
        body = body_of(tuple(turns), memo=memo, stable="s", tools=(ADD,))
        assert body == body_of(tuple(turns), stable="s", tools=(ADD,)), "a fresh memo gives other bytes"
        assert body.startswith(before.removesuffix(b"]}"))
        assert ill_paired(json.loads(body)["input"]) == []
        before = body


def test_given_a_finish_only_when_put_together_then_the_block_is_empty() -> None:
    assert decode(completed()) == [Finish("stop")]
