"""Requests of the chat dialect: their bytes, and how they grow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.providers.base import Memo, ModelInfo, ModelRequest
from deepstrike.providers.dialects.base import Asked
from deepstrike.providers.dialects.chat.dialect import ChatDialect
from deepstrike.providers.dialects.names import names_back, wire_name
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.providers.tables.servers import SERVERS
from deepstrike.testing.server import judge
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    File,
    Image,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    UserBlock,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.providers.dialects.base import Dialect
    from deepstrike.wire.message import Part, Turn

ADD = ToolSpec("add", "Add.", '{"type":"object","properties":{"y":{"type":"integer"},"x":{"type":"integer"}}}')
PNG = Image("image/png", "QUJD")


def body_of(
    turns: Sequence[Turn],
    *,
    memo: Memo | None = None,
    stable: str = "",
    knowledge: str = "",
    tools: tuple[ToolSpec, ...] = (),
    fields: Mapping[str, object] | None = None,
    limit: int | None = None,
    dialect: Dialect | None = None,
) -> bytes:
    request = ModelRequest(stable, knowledge, turns, tools, {}, memo=memo or Memo())
    asked = Asked(request, ModelInfo("m"), "vendor", fields or {}, limit, Faults(Mask([])))
    return (dialect or ChatDialect()).encode(asked)


def messages_of(turns: Sequence[Turn]) -> list[object]:
    body = json.loads(body_of(turns))
    assert isinstance(body["messages"], list)
    return body["messages"]


def user(*parts: Part) -> UserBlock:
    return UserBlock(parts)


def call(call_id: str, name: str = "add", args: str = '{"x":1}') -> CallBlock:
    return CallBlock(call_id, name, args)


def result(call_id: str, *parts: Part) -> ResultBlock:
    return ResultBlock(call_id, "add", parts)


def test_given_a_request_of_everything_when_encoded_then_these_are_its_bytes() -> None:
    turns = (
        user(Text("17 + 28?")),
        AssistantBlock((Thinking("hm"), Text("Let me add."), call("c1"), call("c2", args="{}"), Opaque("x", "{}"))),
        result("c1", Text("45")),
        result("c2", Text("0")),
    )
    body = body_of(
        turns, stable="Be brief.", knowledge="Facts.", tools=(ADD,), fields={"top_p": 0.5, "seed": 7}, limit=100
    )
    assert body == (
        b'{"model":"m","seed":7,"stream":true,"stream_options":{"include_usage":true},"top_p":0.5,'
        b'"tools":[{"type":"function","function":{"name":"add","description":"Add.","parameters":'
        b'{"properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"type":"object"}}}],'
        b'"messages":[{"role":"system","content":"Be brief."},{"role":"system","content":"Facts."},'
        b'{"role":"user","content":"17 + 28?"},'
        b'{"role":"assistant","content":"Let me add.","tool_calls":['
        b'{"id":"c1","type":"function","function":{"name":"add","arguments":"{\\"x\\":1}"}},'
        b'{"id":"c2","type":"function","function":{"name":"add","arguments":"{}"}}]},'
        b'{"role":"tool","tool_call_id":"c1","content":"45"},'
        b'{"role":"tool","tool_call_id":"c2","content":"0"}],"max_completion_tokens":100}'
    )


def test_given_only_calls_when_encoded_then_the_content_is_null() -> None:
    assert messages_of([AssistantBlock((call("c"),))])[0] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}}],
    }


def test_given_a_reply_without_text_and_calls_when_encoded_then_it_is_left_out() -> None:
    turns: list[Turn] = [user(Text("a")), AssistantBlock((Thinking("hm"),)), user(Text("b"))]
    assert messages_of(turns) == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]


def test_given_images_and_files_when_encoded_then_they_are_parts_of_the_user_message() -> None:
    turns = [user(Text("see"), PNG, Image(url="https://x.test/a.png"), File("application/pdf", "QUJD", "a.pdf"))]
    assert messages_of(turns) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
            ],
        }
    ]


def test_given_several_texts_when_encoded_then_they_are_lines_of_one_string() -> None:
    assert messages_of([user(Text("a"), Text("b"))]) == [{"role": "user", "content": "a\nb"}]


def test_given_an_image_in_a_result_when_encoded_then_it_follows_behind_all_results_of_the_turn() -> None:
    turns: list[Turn] = [
        AssistantBlock((call("a"), call("b"))),
        result("a", Text("one"), PNG),
        result("b", Text("two")),
    ]
    messages = messages_of(turns)
    assert messages[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "one\n[the attachments of add follow]"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]},
    ]


def test_given_lone_surrogates_when_encoded_then_the_body_is_strict_utf8_json() -> None:
    turns: list[Turn] = [
        user(Text("caf\udce9 \ud83d\ude00")),
        AssistantBlock((call("c\ud800", args='{"x":"\udfff"}'),)),
        result("c\ud800", Text("ok \ud83d end")),
    ]
    body = body_of(turns, stable="\udc00")
    assert json.loads(body.decode("utf-8"))["messages"][:2] == [
        {"role": "system", "content": "\ufffd"},
        {"role": "user", "content": "caf\ufffd 😀"},
    ]


def test_given_an_integer_beyond_64_bits_in_a_schema_when_encoded_then_it_is_exact() -> None:
    tool = ToolSpec("big", "", '{"maximum": 123456789012345678901234567890}')
    assert b'"parameters":{"maximum":123456789012345678901234567890}' in body_of([user(Text("a"))], tools=(tool,))


def test_given_a_memo_when_turns_are_added_then_only_they_are_encoded() -> None:
    memo = Memo()
    first = [user(Text("a"))]
    before = body_of(first, memo=memo)
    # What was encoded is not looked at again: a change of an old turn would not show.
    after = body_of([user(Text("changed")), AssistantBlock((Text("b"),))], memo=memo)
    assert after == before.removesuffix(b"]}") + b',{"role":"assistant","content":"b"}]}'


_replies = st.integers(0, 3).flatmap(
    lambda calls: st.tuples(st.just(calls), st.booleans(), st.booleans()),
)


def conversation(shape: list[tuple[int, bool, bool]]) -> list[list[Turn]]:
    """A history in groups that belong to one request each; every third reply is another service's."""
    groups: list[list[Turn]] = [[user(Text("goal"))]]
    for n, (calls, text, picture) in enumerate(shape):
        ids = [f"c{n}_{k}" for k in range(calls)]
        said = (Thinking(f"h{n}"), *((Text(f"t{n}"),) if text or not calls else ()))
        source = "elsewhere" if n % 3 == 2 else "vendor"
        group: list[Turn] = [AssistantBlock((*said, *(call(one) for one in ids)), source, "m")]
        group += [result(one, Text("r"), *((PNG,) if picture else ())) for one in ids]
        groups.append([*group, user(Text("next"))] if text else group)
    return groups


@pytest.mark.parametrize("server", SERVERS)
@settings(max_examples=25, deadline=None)
@given(shape=st.lists(_replies, max_size=6))
def test_given_a_growing_history_when_encoded_step_by_step_then_each_request_begins_with_the_one_before(
    server: str,
    shape: list[tuple[int, bool, bool]],
) -> None:
    dialect = SERVERS[server].dialect
    memo, turns, before = Memo(), list["Turn"](), b""
    for group in conversation(shape):
        turns += group
        history = tuple(turns)
        body = body_of(history, memo=memo, stable="s", tools=(ADD,), dialect=dialect)
        assert body == body_of(history, stable="s", tools=(ADD,), dialect=dialect), "a fresh memo gives other bytes"
        assert body.startswith(before.removesuffix(b"]}"))
        assert judge(json.loads(body)) is None
        before = body


def test_given_names_that_hosts_refuse_when_mapped_then_they_fit_and_come_back() -> None:
    names = ["fs.read file", "a" * 70, "a" * 69 + "b", "ok_name-1", "été", "", "a" * 64, "fs_read_file"]
    tools = [ToolSpec(name, "", "{}") for name in names]
    wires = [wire_name(name) for name in names]
    assert len(set(wires)) == len(names)
    assert all(wire_name(wire) == wire for wire in wires), "a wire name must itself be one"
    assert [wire for name, wire in zip(names, wires, strict=True) if name == wire] == [
        "ok_name-1",
        "a" * 64,
        "fs_read_file",
    ]
    assert names_back(tools) == {wire: name for name, wire in zip(names, wires, strict=True) if wire != name}
    assert wire_name("fs.read file").startswith("fs_read_file_")


def test_given_a_mapped_name_when_encoded_then_tool_and_call_have_the_same_one() -> None:
    turns: list[Turn] = [user(Text("a")), AssistantBlock((call("c", "fs.read"),)), result("c", Text("r"))]
    body = json.loads(body_of(turns, tools=(ToolSpec("fs.read", "", "{}"),)))
    assert judge(body) is None
    assert body["tools"][0]["function"]["name"] == body["messages"][1]["tool_calls"][0]["function"]["name"]


def test_given_no_turns_when_encoded_then_the_body_is_still_json() -> None:
    assert json.loads(body_of([], stable="s"))["messages"] == [{"role": "system", "content": "s"}]
