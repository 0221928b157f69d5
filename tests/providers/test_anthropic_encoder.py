"""Requests of the messages wire: their bytes, how they grow, and where their cache breakpoints stand."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import overload

import pytest
from anthropic_wire import SOURCE, ask_for, blocks_of, body_of, judge
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.providers.base import Memo, ModelInfo, OutputSchema
from deepstrike.providers.dialects.messages.content import wire_id
from deepstrike.providers.dialects.messages.dialect import MessagesDialect
from deepstrike.wire.message import (
    AssistantBlock,
    AssistantPart,
    CallBlock,
    File,
    Image,
    Notice,
    Opaque,
    Part,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    Turn,
    UserBlock,
)

ADD = ToolSpec("add", "Add.", '{"type":"object","properties":{"y":{"type":"integer"},"x":{"type":"integer"}}}')
MARK = '"cache_control":{"type":"ephemeral"}'
HAIKU = ModelInfo("claude-haiku-4-5", 200_000, 64_000, traits=frozenset({"budget"}))
HM = '{"type":"thinking","thinking":"hm","signature":"c2ln"}'


def user(*parts: Part) -> UserBlock:
    return UserBlock(parts)


def said(*parts: AssistantPart, dialect: str = SOURCE) -> AssistantBlock:
    return AssistantBlock(parts, dialect, "claude-test")


def call(call_id: str, args: str = '{"x": 1}') -> CallBlock:
    return CallBlock(call_id, "add", args)


def result(call_id: str, *parts: Part, is_error: bool = False) -> ResultBlock:
    return ResultBlock(call_id, "add", parts, is_error)


def messages_of(turns: Sequence[Turn]) -> list[object]:
    messages = body_of(ask_for(turns))["messages"]
    assert isinstance(messages, list)
    return messages


def test_given_a_request_of_everything_when_encoded_then_these_are_its_bytes() -> None:
    turns = (
        user(Text("17 + 28?")),
        said(Thinking("hm"), Opaque(SOURCE, HM), Text("Let me add."), call("c1"), call("c2", "{}")),
        result("c1", Text("45")),
        result("c2", Text("no"), is_error=True),
    )
    asked = ask_for(
        turns, stable="Be brief.", knowledge="Facts.", tools=(ADD,), fields={"top_k": 5, "metadata": {"user_id": "u"}}
    )
    assert MessagesDialect(cache=False).encode(asked) == (
        b'{"metadata":{"user_id":"u"},"model":"claude-test","stream":true,"top_k":5,'
        b'"tools":[{"name":"add","description":"Add.","input_schema":'
        b'{"properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"type":"object"}}],'
        b'"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Facts."}],'
        b'"messages":[{"role":"user","content":[{"type":"text","text":"17 + 28?"}]},'
        b'{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},'
        b'{"type":"text","text":"Let me add."},'
        b'{"type":"tool_use","id":"c1","name":"add","input":{"x": 1}},'
        b'{"type":"tool_use","id":"c2","name":"add","input":{}}]},'
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"45"}]},'
        b'{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"no"}],"is_error":true}]}],'
        b'"max_tokens":1000}'
    )


def test_given_texts_of_nothing_when_encoded_then_no_block_is_blank() -> None:
    turns: list[Turn] = [
        user(Text("a")),
        said(Text(" "), call("c1")),
        result("c1", Text("")),
        user(Text("\n")),
        said(Text("  ")),
        user(Text("b"), Text(" \t")),
    ]
    assert messages_of(turns)[1:] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]},
        {"role": "user", "content": [{"type": "text", "text": "(no text)"}]},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
    ]


def test_given_parallel_calls_and_a_delta_when_encoded_then_the_results_fill_one_message_directly_behind() -> None:
    turns: list[Turn] = [
        user(Text("a")),
        said(call("c1"), call("c2"), call("c3")),
        result("c1", Text("1")),
        result("c2", Text("2")),
        result("c3", Text("3")),
        user(Text("[state] halfway")),
    ]
    roles = [message["role"] for message in json.loads(MessagesDialect().encode(ask_for(turns)))["messages"]]
    assert roles == ["user", "assistant", "user", "user"]
    blocks = [block for _, block in blocks_of(body_of(ask_for(turns)))]
    assert [block.get("tool_use_id") for block in blocks[4:]] == ["c1", "c2", "c3", None]


def test_given_images_and_files_when_encoded_then_they_are_blocks_also_of_results() -> None:
    page = base64.b64encode(b"a,b\n1,2").decode()
    parts = (
        Image("image/png", "QUJD"),
        Image(url="https://x.test/a.png"),
        File("application/pdf", "QUJD", "a.pdf"),
        File("text/csv", page, "t.csv"),
    )
    wanted = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
        {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "a,b\n1,2"},
            "title": "t.csv",
        },
    ]
    messages = messages_of([user(*parts), said(call("c")), result("c", *parts)])
    assert messages[0] == {"role": "user", "content": wanted}
    assert messages[2] == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": wanted}]}


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Image("image/tiff", "QUJD"), "[an image of type image/tiff, which this service cannot read]"),
        (File("audio/wav", "QUJD", "a.wav"), "[the file a.wav of type audio/wav, which this service cannot read]"),
        (File("text/plain", "no base64!", ""), "[the file file of type text/plain, which this service cannot read]"),
        (
            File("text/plain", "", "empty.txt"),
            "[the file empty.txt of type text/plain, which this service cannot read]",
        ),
    ],
)
def test_given_what_the_wire_cannot_carry_when_encoded_then_the_text_says_so(part: Part, told: str) -> None:
    assert messages_of([user(part)]) == [{"role": "user", "content": [{"type": "text", "text": told}]}]


def test_given_thinking_of_another_service_when_encoded_then_it_is_left_out_and_told_once() -> None:
    memo = Memo()
    foreign = (Thinking("secret"), Opaque("gemini", '{"thoughtSignature":"x"}'), Text("Yes."))
    turns: list[Turn] = [
        user(Text("a")),
        said(*foreign, dialect="gemini"),
        user(Text("b")),
        said(*foreign, dialect="gemini"),
        user(),
    ]
    body = body_of(ask_for(turns, memo=memo))
    assert [block for role, block in blocks_of(body) if role == "assistant"] == [{"type": "text", "text": "Yes."}] * 2
    assert memo.notices == [
        Notice("artefact_dropped", "thinking of earlier answers by gemini is not sent: only it can read it")
    ]


def test_given_thinking_behind_which_nothing_follows_when_encoded_then_it_is_left_out() -> None:
    turns: list[Turn] = [
        user(Text("a")),
        said(Text("Well."), Opaque(SOURCE, HM)),
        user(Text("b")),
        said(Opaque(SOURCE, HM)),
        user(),
    ]
    assert [block for role, block in blocks_of(body_of(ask_for(turns))) if role == "assistant"] == [
        {"type": "text", "text": "Well."}
    ]


def test_given_two_texts_with_a_boundary_when_encoded_then_they_are_two_blocks() -> None:
    blocks = blocks_of(body_of(ask_for([user(Text("a")), said(Text("b"), Opaque(SOURCE, "null"), Text("c"))])))
    assert [block["text"] for _, block in blocks] == ["a", "b", "c"]


def test_given_a_text_that_was_kept_with_its_citations_when_encoded_then_it_stands_once() -> None:
    cited = '{"type":"text","text":"Green","citations":[{"type":"char_location"}]}'
    blocks = list(blocks_of(body_of(ask_for([user(Text("a")), said(Text("Green"), Opaque(SOURCE, cited)), user()]))))
    assert [block for role, block in blocks if role == "assistant"] == [json.loads(cited)]


def test_given_artefacts_when_encoded_then_they_stand_byte_for_byte_as_they_came() -> None:
    odd = '{"type":"server_tool_use","id":"s","name":"web","input":{"a": 1.50,"a": 1e400}}'
    encoded = MessagesDialect().encode(ask_for([user(Text("a")), said(Opaque(SOURCE, odd), Text("b")), user()]))
    assert odd.encode() in encoded


@pytest.mark.parametrize("call_id", ["functions.add:0", "ünï", "x" * 80, "a b"])
def test_given_an_id_that_the_wire_refuses_when_encoded_then_call_and_result_have_one_that_it_takes(
    call_id: str,
) -> None:
    blocks = [
        block for _, block in blocks_of(body_of(ask_for([user(Text("a")), said(call(call_id)), result(call_id)])))
    ]
    assert blocks[1]["id"] == blocks[2]["tool_use_id"] == wire_id(call_id)
    assert wire_id(call_id).replace("_", "").replace("-", "").isalnum()
    assert len(wire_id(call_id)) <= 64


@given(st.sets(st.text(alphabet="ab.:_-é", max_size=100), min_size=2, max_size=2))
def test_given_two_ids_when_mapped_then_they_stay_two(ids: set[str]) -> None:
    assert len({wire_id(one) for one in ids}) == 2


def test_given_no_limit_when_encoded_then_the_reserve_is_sent_but_never_more_than_the_model_gives() -> None:
    turns: list[Turn] = [user(Text("a"))]
    limits = [
        body_of(ask_for(turns, limit=limit, reserve=reserve))["max_tokens"]
        for limit, reserve in ((None, 5_000), (None, 50_000), (300, 5_000), (90_000, 5_000))
    ]
    assert limits == [5_000, 8_000, 300, 8_000]


def test_given_a_tool_choice_without_tools_when_encoded_then_it_is_not_sent() -> None:
    fields = {"tool_choice": {"type": "auto"}}
    assert "tool_choice" not in body_of(ask_for([user(Text("a"))], fields=fields))
    assert body_of(ask_for([user(Text("a"))], fields=fields, tools=(ADD,)))["tool_choice"] == {"type": "auto"}


def test_given_only_that_calls_must_not_be_parallel_when_encoded_then_the_choice_has_a_type() -> None:
    fields = {"tool_choice": {"disable_parallel_tool_use": True}}
    body = body_of(ask_for([user(Text("a"))], fields=fields, tools=(ADD,)))
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_given_no_tools_wanted_and_no_parallel_calls_when_encoded_then_only_the_first_is_said() -> None:
    fields = {"tool_choice": {"type": "none", "disable_parallel_tool_use": True}}
    assert body_of(ask_for([user(Text("a"))], fields=fields, tools=(ADD,)))["tool_choice"] == {"type": "none"}


def test_given_a_form_of_the_answer_when_encoded_then_it_is_in_the_form_that_the_service_takes() -> None:
    schema = json.dumps(
        {
            "type": "object",
            "properties": {
                "age": {"type": "integer", "minimum": 0, "description": "In years."},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "minItems": 2},
                "id": {"oneOf": [{"type": "string", "format": "isbn"}, {"type": "string", "format": "uuid"}]},
            },
            "required": ["age"],
            "$defs": {"Tag": {"type": "object", "properties": {"minimum": {"type": "string", "maxLength": 3}}}},
        }
    )
    asked = ask_for(
        [user(Text("a"))], fields={"output_config": {"effort": "low"}}, output=OutputSchema("person", schema)
    )
    assert body_of(asked)["output_config"] == {
        "effort": "low",
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "age": {"type": "integer", "description": 'In years. {"minimum":0}'},
                    "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "description": '{"minItems":2}'},
                    "id": {
                        "anyOf": [
                            {"type": "string", "description": '{"format":"isbn"}'},
                            {"type": "string", "format": "uuid"},
                        ]
                    },
                },
                "required": ["age"],
                "$defs": {
                    "Tag": {
                        "type": "object",
                        "properties": {"minimum": {"type": "string", "description": '{"maxLength":3}'}},
                        "additionalProperties": False,
                    }
                },
                "additionalProperties": False,
            },
        },
    }


def test_given_a_dialect_without_forms_when_encoded_then_none_is_sent() -> None:
    asked = ask_for([user(Text("a"))], output=OutputSchema("x", '{"type":"object"}'))
    assert "output_config" not in json.loads(MessagesDialect(structured=False).encode(asked))


def marked(body: dict[str, object]) -> list[str]:
    """Where the breakpoints of a request stand: the system or tool, then the messages' blocks."""
    places: list[str] = []
    for name in ("tools", "system"):
        listed = body.get(name, [])
        assert isinstance(listed, list)
        places += [name for one in listed if "cache_control" in one]
    return places + [str(place) for place, (_, block) in enumerate(blocks_of(body)) if "cache_control" in block]


def test_given_system_tools_and_history_when_encoded_then_four_places_are_breakpoints() -> None:
    turns: list[Turn] = [user(Text("a"), Text("b"))]
    for number in range(10):
        turns += [said(Opaque(SOURCE, HM), call(f"c{number}")), result(f"c{number}", Text("r"))]
    body = body_of(ask_for(turns, stable="s", knowledge="k", tools=(ADD,)), cache=True)
    # 32 blocks; the request before ended with block 28, before the last reply.
    assert marked(body) == ["system", "1", "28", "31"]
    assert body["system"] == [
        {"type": "text", "text": "s"},
        {"type": "text", "text": "k", "cache_control": {"type": "ephemeral"}},
    ]


def test_given_no_system_when_encoded_then_the_last_tool_is_a_breakpoint() -> None:
    assert marked(body_of(ask_for([user(Text("a"))], tools=(ADD,)), cache=True)) == ["tools", "0"]


@pytest.mark.parametrize(
    ("extensions", "control"),
    [
        ({}, {"type": "ephemeral"}),
        ({"cache_ttl": "5m"}, {"type": "ephemeral"}),
        ({"cache_ttl": "1h"}, {"type": "ephemeral", "ttl": "1h"}),
        ({"cache_ttl": "off"}, None),
        ({"extra_body": {"cache_control": {"type": "ephemeral"}}}, None),
    ],
)
def test_given_a_cache_life_when_encoded_then_the_breakpoints_say_so(
    extensions: dict[str, object], control: object
) -> None:
    body = body_of(ask_for([user(Text("a"))], stable="s", extensions=extensions), cache=True)
    controls = [block.get("cache_control") for _, block in blocks_of(body)]
    assert controls == [control]
    assert isinstance(body["system"], list)
    assert body["system"][0].get("cache_control") == control


def unmarked(encoded: bytes) -> bytes:
    return encoded.replace(b"," + MARK.encode(), b"")


def messages_text(encoded: bytes) -> bytes:
    """The bytes up to the end of the last message, without breakpoints."""
    return unmarked(encoded)[: unmarked(encoded).rindex(b'],"max_tokens"')]


@st.composite
def loops(draw: st.DrawFn) -> list[list[Turn]]:
    """Histories as a kernel makes them, cut where model calls are made."""
    goal: list[Part] = [Text("a"), Text(" "), Image("image/png", "QQ==")]
    batches: list[list[Turn]] = [[user(*draw(st.lists(st.sampled_from(goal))))]]
    for number in range(draw(st.integers(1, 12))):
        dialect = draw(st.sampled_from([SOURCE, "gemini", ""]))
        parts: list[AssistantPart] = draw(
            st.lists(
                st.sampled_from([Text("t"), Text("\n"), Opaque(SOURCE, HM), Opaque("gemini", "{}"), Thinking("x")])
            )
        )
        ids = [f"c{number}.{i}" for i in range(draw(st.integers(0, 3)))]
        batch: list[Turn] = [said(*parts, *(call(one) for one in ids), dialect=dialect)]
        batch += [result(one, *draw(st.lists(st.sampled_from([Text(""), Text("r")]), max_size=2))) for one in ids]
        if not ids or draw(st.booleans()):
            batches.append(batch)
            batch = [user(Text(draw(st.sampled_from(["more", ""]))))]
            if draw(st.booleans()):
                batch = batches.pop() + batch
        batches.append(batch)
    return batches


@settings(max_examples=60, deadline=None)
@given(loops())
def test_given_any_history_when_it_grows_then_each_request_begins_with_the_last_and_no_service_refuses_it(
    batches: list[list[Turn]],
) -> None:
    memo, turns, before = Memo(), list[Turn](), b""

    def encode(memo: Memo) -> bytes:
        thinks = ask_for(turns, memo=memo, stable="s", tools=(ADD,), info=HAIKU, extensions={"enable_thinking": True})
        return MessagesDialect().encode(thinks)

    for batch in batches:
        turns += batch
        encoded = encode(memo)
        assert judge(json.loads(encoded)) is None
        assert messages_text(encoded).startswith(before)
        before = messages_text(encoded)
        # The same bytes in a process that encodes the whole history at once.
        assert encode(Memo()) == encoded


class Watched(Sequence[Turn]):
    """Turns that count how many of them are looked at."""

    def __init__(self, turns: list[Turn]) -> None:
        self.turns = turns
        self.looked_at = 0

    def __len__(self) -> int:
        return len(self.turns)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            found = self.turns[index]
            self.looked_at += len(found)
            return found
        self.looked_at += 1
        return self.turns[index]


def test_given_a_growing_history_when_encoded_then_only_what_is_new_is_looked_at() -> None:
    memo, turns = Memo(), Watched([user(Text("a"))])
    for number in range(50):
        MessagesDialect().encode(ask_for(turns, memo=memo))
        turns.turns += [said(call(f"c{number}")), result(f"c{number}", Text("r"))]
        turns.looked_at = 0
        MessagesDialect().encode(ask_for(turns, memo=memo))
        assert turns.looked_at == 3  # the two new ones, and the one before them


@pytest.mark.parametrize(("traits", "kept"), [(frozenset({"prefix_bound"}), False), (frozenset[str](), True)])
def test_given_a_reply_behind_a_rewrite_when_encoded_then_thinking_that_is_bound_to_the_prefix_is_left_out(
    traits: frozenset[str], kept: bool
) -> None:
    moved = AssistantBlock((Opaque(SOURCE, HM), call("c1")), SOURCE, "claude-test", rebased=True)
    still = AssistantBlock((Opaque(SOURCE, HM), call("c2")), SOURCE, "claude-test")
    info = ModelInfo("claude-test", 200_000, 8_000, traits=traits)
    turns = (user(Text("hi")), moved, result("c1"), still, result("c2"))

    messages = body_of(ask_for(turns, info=info))["messages"]

    assert isinstance(messages, list)
    thinking = [any(part["type"] == "thinking" for part in message["content"]) for message in messages]
    assert thinking == [False, kept, False, True, False]
