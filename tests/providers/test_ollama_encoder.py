"""Requests to Ollama: their bytes, what of a history goes back, and how they grow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gemini_ollama_wires import asked

from deepstrike.providers.base import Memo, OutputSchema
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.ollama.dialect import OllamaDialect
from deepstrike.providers.extensions import wire_fields
from deepstrike.providers.ollama import FIELDS
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
    from collections.abc import Sequence

    from deepstrike.wire.message import Part, Turn

ADD = ToolSpec("math.add", "Add.", '{"type":"object","properties":{"x":{"type":"integer"}}}')
DIALECT = OllamaDialect()
FORM = OutputSchema("sum", '{"type":"object","properties":{"n":{"type":"integer"}}}')


def user(*parts: Part) -> UserBlock:
    return UserBlock(parts or (Text("hi"),))


def reply(*parts: Any, dialect: str = "ollama") -> AssistantBlock:
    return AssistantBlock(parts, dialect, "qwen3")


def body(turns: Sequence[Turn] = (user(),), *, model: str = "qwen3", **more: Any) -> dict[str, Any]:
    more["fields"] = wire_fields(more.get("extensions", {}), FIELDS)
    found: dict[str, Any] = json.loads(DIALECT.encode(asked(turns, model=model, source="ollama", **more)))
    return found


def test_given_a_request_of_everything_when_encoded_then_these_are_its_bytes() -> None:
    turns = (
        user(Text("17 + 28?")),
        reply(Thinking("hm"), Text("Let me add."), CallBlock("c1", "math.add", '{"x": 1}'), CallBlock("c2", "f", "{}")),
        ResultBlock("c1", "math.add", (Text("45"),)),
        ResultBlock("c2", "f", (Text("no such thing"),), is_error=True),
    )
    extensions: dict[str, object] = {"temperature": 0.5, "stop": "END", "keep_alive": "10m", "enable_thinking": True}
    sent = DIALECT.encode(
        asked(
            turns,
            model="qwen3",
            source="ollama",
            stable="Be brief.",
            knowledge="Facts.",
            tools=(ADD,),
            fields=wire_fields(extensions, FIELDS),
            extensions=extensions,
            limit=100,
            window=16_384,
        )
    )
    name = wire_name("math.add").encode()
    assert sent == (
        b'{"keep_alive":"10m","model":"qwen3","stream":true,"think":true,'
        b'"tools":[{"type":"function","function":{"name":"' + name + b'","description":"Add.","parameters":'
        b'{"properties":{"x":{"type":"integer"}},"type":"object"}}}],'
        b'"messages":[{"role":"system","content":"Be brief.\\n\\nFacts."},{"role":"user","content":"17 + 28?"},'
        b'{"role":"assistant","content":"Let me add.","thinking":"hm","tool_calls":['
        b'{"id":"c1","function":{"name":"' + name + b'","arguments":{"x": 1}}},'
        b'{"id":"c2","function":{"name":"f","arguments":{}}}]},'
        b'{"role":"tool","tool_name":"' + name + b'","tool_call_id":"c1","content":"45"},'
        b'{"role":"tool","tool_name":"f","tool_call_id":"c2","content":"no such thing"}],'
        b'"options":{"num_ctx":16384,"stop":["END"],"temperature":0.5,"num_predict":100}}'
    )


@pytest.mark.parametrize(
    ("extensions", "options"),
    [
        ({}, {"num_ctx": 16_384}),
        ({"num_ctx": 8192}, {"num_ctx": 8192}),
        ({"options": {"num_ctx": 8192, "num_gpu": 1}}, {"num_ctx": 8192, "num_gpu": 1}),
        ({"extra_body": {"options": {"num_ctx": 4096, "num_thread": 2}}}, {"num_ctx": 4096, "num_thread": 2}),
        ({"options": {"num_gpu": 1}, "top_k": 3}, {"num_ctx": 16_384, "num_gpu": 1, "top_k": 3}),
    ],
)
def test_given_a_window_when_encoded_then_it_is_asked_for_unless_an_explicit_one_is_given(
    extensions: dict[str, object], options: dict[str, object]
) -> None:
    assert body(extensions=extensions, window=16_384)["options"] == options


@pytest.mark.parametrize(
    ("model", "extensions", "think"),
    [
        ("qwen3", {}, None),
        ("qwen3", {"enable_thinking": True}, True),
        ("qwen3", {"enable_thinking": False}, False),
        ("qwen3", {"reasoning_effort": "none"}, False),
        ("qwen3", {"reasoning_effort": "high"}, True),
        ("qwen3", {"think": "medium"}, "medium"),
        ("gpt-oss:20b", {"enable_thinking": False}, "low"),
        ("gpt-oss:20b", {"enable_thinking": True}, None),
        ("library/gpt-oss", {"reasoning_effort": "xhigh"}, "high"),
        ("gpt-oss:20b", {"reasoning_effort": "medium"}, "medium"),
    ],
)
def test_given_a_wish_to_think_when_encoded_then_it_is_said_as_the_model_takes_it(
    model: str, extensions: dict[str, object], think: object
) -> None:
    assert body(model=model, extensions=extensions).get("think") == think


def test_given_a_reply_from_another_service_when_it_goes_back_then_its_thinking_stays_behind_with_a_notice() -> None:
    memo = Memo()
    block = reply(Thinking("hm"), Text("a"), Opaque("anthropic", '{"x":1}'), dialect="anthropic")
    assert body([user(), block, block], memo=memo)["messages"][1:] == [{"role": "assistant", "content": "a"}] * 2
    assert [notice.code for notice in memo.notices] == ["artefact_dropped"]


def test_given_hidden_thinking_of_our_own_when_it_goes_back_then_its_bytes_are_unchanged() -> None:
    sent = DIALECT.encode(
        asked([user(), reply(Text("a"), Opaque("ollama", '"h\\u00e9 m"'))], model="m", source="ollama")
    )
    assert b'{"role":"assistant","content":"a","thinking":"h\\u00e9 m"}' in sent


def test_given_a_reply_with_neither_text_nor_calls_when_encoded_then_it_is_left_out() -> None:
    messages = body([user(), reply(Thinking("hm")), user(Text("on"))])["messages"]
    assert messages == [{"role": "user", "content": "hi"}, {"role": "user", "content": "on"}]


def test_given_images_when_encoded_then_they_are_bare_base64_and_what_cannot_go_is_said_in_words() -> None:
    png = Image("image/png", "QUJD")
    turns: list[Turn] = [
        user(Text("see"), png, Image(url="https://x.test/a.png"), File("application/pdf", "QUJD", "a.pdf")),
        reply(CallBlock("c1", "f", "{}")),
        ResultBlock("c1", "f", (Text("here"), png)),
    ]
    messages = body(turns)["messages"]
    assert messages[0] == {
        "role": "user",
        "content": "see\n[an image at https://x.test/a.png, which this model service cannot fetch]\n"
        "[the file a.pdf (application/pdf), which this model service cannot read]",
        "images": ["QUJD"],
    }
    assert messages[2]["content"] == "here\n[the attachments of f follow]"
    assert messages[3] == {"role": "user", "content": "", "images": ["QUJD"]}


def test_given_a_growing_history_when_encoded_then_only_new_turns_are_written_and_old_bytes_stay() -> None:
    memo = Memo()
    turns: list[Turn] = [user()]
    first = DIALECT.encode(asked(turns, model="m", source="ollama", memo=memo, limit=7, stable="s"))
    kept = bytes(memo.body)
    turns += [reply(CallBlock("c1", "f", "{}")), ResultBlock("c1", "f", (Text("1"),))]
    second = DIALECT.encode(asked(turns, model="m", source="ollama", memo=memo, stable="s"))
    assert memo.body.startswith(kept)
    messages = first.partition(b'],"options"')[0]
    assert second.startswith(messages)
    assert second == DIALECT.encode(asked(turns, model="m", source="ollama", stable="s"))
    assert (b'"num_predict":7' in first, b"num_predict" in second) == (True, False)


def test_given_a_wanted_form_when_encoded_then_it_is_the_format_unless_there_are_tools() -> None:
    assert body(output=FORM)["format"] == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert body(output=FORM, extensions={"format": "json"})["format"] == "json"
    sent = body(output=FORM, tools=(ADD,))
    assert "format" not in sent
    assert sent["messages"][0] == {
        "role": "system",
        "content": "Give your final answer as JSON only, without any other words, in the form of this schema: "
        f"{FORM.schema}",
    }


def test_given_no_system_text_when_encoded_then_no_system_message_is_sent() -> None:
    assert body()["messages"] == [{"role": "user", "content": "hi"}]
