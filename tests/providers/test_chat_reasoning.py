"""Reasoning that goes back: what is kept of an answer, and what the next request holds of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from wires import ask, call_event, collect, decode_pieces, event, stream

from deepstrike.providers.base import Artefact, Finish, Memo, ModelEvent, ModelInfo, ModelRequest
from deepstrike.providers.dialects.base import Asked
from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.dialects.chat.dialect import FORGETS_REASONING, ChatDialect, Replay
from deepstrike.providers.faults import Faults
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.redact import Mask
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing.server import ModelServer, Raw
from deepstrike.wire.message import AssistantBlock, CallBlock, Notice, Opaque, ResultBlock, Text, Thinking, UserBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.providers.dialects.chat.dialect import Turns
    from deepstrike.wire.message import AssistantPart, Turn

FAULTS = Faults(Mask([]))
TEXT_BACK = Replay("reasoning_content", "all", demanded="tools")
DETAILS_BACK = Replay("reasoning", "all", details=True)
INLINE_BACK = Replay(turns="all", details=True, inline=True)
CALL = CallBlock("c1", "add", "{}")
RESULT = ResultBlock("c1", "add", (Text("3"),))


def mine(*parts: AssistantPart, model: str = "m") -> AssistantBlock:
    return AssistantBlock(parts, "vendor", model)


def messages(
    replay: Replay,
    turns: Sequence[Turn],
    *,
    extensions: Mapping[str, object] | None = None,
    info: ModelInfo | None = None,
    memo: Memo | None = None,
) -> list[dict[str, object]]:
    """The assistant messages of a request with these turns."""
    memo = memo or Memo()
    request = ModelRequest("", "", turns, (), extensions or {}, memo=memo)
    body = ChatDialect(replay=replay).encode(Asked(request, info or ModelInfo("m"), "vendor", {}, None, FAULTS))
    found = json.loads(body)["messages"]
    return [{k: v for k, v in one.items() if k != "role"} for one in found if one["role"] == "assistant"]


CALLED = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]


def test_given_a_service_that_wants_reasoning_back_when_replies_are_encoded_then_each_has_its_own() -> None:
    turns: list[Turn] = [mine(Thinking("sum "), Thinking("up"), CALL), RESULT, mine(Thinking("done"), Text("3"))]
    assert messages(TEXT_BACK, turns) == [
        {"content": None, "reasoning_content": "sum up", "tool_calls": CALLED},
        {"content": "3", "reasoning_content": "done"},
    ]


def test_given_a_service_that_wants_it_with_calls_only_when_encoded_then_plain_replies_have_none() -> None:
    turns: list[Turn] = [mine(Thinking("sum"), CALL), RESULT, mine(Thinking("done"), Text("3"))]
    assert messages(Replay("reasoning", "tools"), turns) == [
        {"content": None, "reasoning": "sum", "tool_calls": CALLED},
        {"content": "3"},
    ]


@pytest.mark.parametrize(
    ("demanded", "extensions", "fields"),
    [
        ("none", {}, [{}, {}]),
        ("tools", {}, [{"reasoning_content": ""}, {}]),
        ("all", {}, [{"reasoning_content": ""}, {"reasoning_content": ""}]),
        ("all", {"enable_thinking": False}, [{}, {}]),
    ],
)
def test_given_replies_without_reasoning_when_the_field_is_demanded_then_it_is_empty(
    demanded: Turns, extensions: Mapping[str, object], fields: list[dict[str, str]]
) -> None:
    replay = Replay("reasoning_content", "all", demanded=demanded)
    turns: list[Turn] = [mine(CALL), RESULT, mine(Text("3"))]
    assert messages(replay, turns, extensions=extensions) == [
        {"content": None, "tool_calls": CALLED, **fields[0]},
        {"content": "3", **fields[1]},
    ]


def test_given_another_services_reply_when_encoded_then_its_reasoning_stays_out_and_a_notice_says_so_once() -> None:
    memo = Memo()
    other = AssistantBlock((Thinking("hm"), Opaque("elsewhere", '{"x":1}'), CALL), "elsewhere", "their-model")
    turns: list[Turn] = [other, RESULT, AssistantBlock((Thinking("hm"), Text("a")), "elsewhere", "their-model")]
    assert messages(TEXT_BACK, turns, memo=memo) == [
        {"content": None, "reasoning_content": "", "tool_calls": CALLED},
        {"content": "a"},
    ]
    assert memo.notices == [
        Notice(
            "artefact_dropped",
            "the reasoning in 2 earlier replies of their-model was not sent: m cannot read it",
        )
    ]
    turns.append(UserBlock((Text("go on"),)))
    memo.notices = []
    messages(TEXT_BACK, turns, memo=memo)
    assert memo.notices == []


def test_given_a_service_that_wants_nothing_back_when_another_services_thinking_is_left_out_then_nothing_is_told() -> (
    None
):
    memo = Memo()
    turns: list[Turn] = [AssistantBlock((Thinking("hm"), Text("a")), "elsewhere", "x")]
    assert messages(Replay(), turns, memo=memo) == [{"content": "a"}]
    assert memo.notices == []


def test_given_an_artefact_when_encoded_then_it_goes_back_byte_for_byte_in_place_of_the_text() -> None:
    memo = Memo()
    details = '{"reasoning_details":[{"type":"reasoning.text","text":"\\u0061  b","signature":"c2ln=="}]}'
    turns: list[Turn] = [mine(Thinking("a  b"), Opaque("vendor", details), CALL), RESULT]
    request = ModelRequest("", "", turns, (), {}, memo=memo)
    dialect = ChatDialect(replay=DETAILS_BACK)
    body = dialect.encode(Asked(request, ModelInfo("m"), "vendor", {}, None, FAULTS))
    assert details[1:-1].encode() in body
    assert messages(DETAILS_BACK, turns)[0].keys() == {"content", "reasoning_details", "tool_calls"}


def test_given_an_artefact_that_only_its_model_can_read_when_another_is_asked_then_it_stays_out() -> None:
    bound = Replay("reasoning", "all", details=True, same_model=True)
    memo = Memo()
    turns: list[Turn] = [mine(Opaque("vendor", '{"reasoning_details":[]}'), Text("a"), model="other")]
    assert messages(bound, turns, memo=memo) == [{"content": "a"}]
    assert [one.code for one in memo.notices] == ["artefact_dropped"]


def test_given_reasoning_that_came_in_tags_when_encoded_then_it_goes_back_in_tags() -> None:
    turns: list[Turn] = [mine(Thinking("plan"), Text("Paris."), CALL), RESULT]
    assert messages(INLINE_BACK, turns) == [{"content": "<think>\nplan\n</think>\n\nParis.", "tool_calls": CALLED}]


def test_given_an_extension_that_must_ask_for_it_when_it_is_off_then_nothing_goes_back() -> None:
    asked = Replay("reasoning_content", "all", asked_by="preserve_thinking")
    turns: list[Turn] = [mine(Thinking("plan"), Text("a"))]
    assert messages(asked, turns) == [{"content": "a"}]
    assert messages(asked, turns, extensions={"preserve_thinking": True}) == [
        {"content": "a", "reasoning_content": "plan"}
    ]


def test_given_a_model_that_refuses_its_own_reasoning_when_encoded_then_it_gets_none() -> None:
    info = ModelInfo("m", traits=frozenset({FORGETS_REASONING}))
    turns: list[Turn] = [mine(Thinking("plan"), CALL), RESULT]
    assert messages(TEXT_BACK, turns, info=info) == [{"content": None, "tool_calls": CALLED}]


def said(replay: Replay, *deltas: Mapping[str, object], expose: bool = True) -> list[ModelEvent]:
    decoder = ChatDecoder({}, FAULTS, replay=replay, source="vendor", expose_reasoning=expose)
    return decode_pieces([stream(*map(event, deltas))], decoder)


def test_given_reasoning_that_is_not_shown_when_it_must_go_back_then_it_becomes_an_artefact() -> None:
    deltas = [{"reasoning_content": "Need \u201cit"}, {"reasoning_content": ".\n"}, {"content": "a"}]
    assert said(TEXT_BACK, *deltas) == [
        ThinkingDelta("Need \u201cit"),
        ThinkingDelta(".\n"),
        TextDelta("a"),
        Finish("stop"),
    ]
    assert said(TEXT_BACK, *deltas, expose=False) == [
        TextDelta("a"),
        Artefact("vendor", '{"reasoning_content":"Need \u201cit.\\n"}'),
        Finish("stop"),
    ]
    assert said(Replay(), *deltas, expose=False) == [TextDelta("a"), Finish("stop")]


def test_given_an_artefact_of_hidden_reasoning_when_encoded_then_the_message_is_as_if_it_had_been_shown() -> None:
    hidden: list[Turn] = [mine(Opaque("vendor", '{"reasoning_content":"sum"}'), CALL), RESULT]
    assert messages(TEXT_BACK, hidden) == messages(TEXT_BACK, [mine(Thinking("sum"), CALL), RESULT])


def detail(**fields: object) -> dict[str, object]:
    return {"reasoning_details": [{"type": "reasoning.text", **fields}]}


@pytest.mark.parametrize("expose", [True, False])
def test_given_reasoning_told_twice_when_read_then_it_is_shown_once_and_its_details_are_kept_whole(
    expose: bool,
) -> None:
    events = said(
        DETAILS_BACK,
        {"reasoning": "The ", **detail(text="The ", format="f", index=0)},
        {"reasoning": "sum", **detail(text="sum", format="f", index=0)},
        {"reasoning": None, **detail(signature="c2ln", format="f", index=0)},
        {"content": "3"},
        expose=expose,
    )
    shown: list[ModelEvent] = [ThinkingDelta("The "), ThinkingDelta("sum")]
    whole = '[{"type":"reasoning.text","text":"The sum","format":"f","index":0,"signature":"c2ln"}]'
    assert events == [
        *(shown if expose else []),
        TextDelta("3"),
        Artefact("vendor", f'{{"reasoning_details":{whole}}}'),
        Finish("stop"),
    ]


def test_given_details_alone_when_read_then_their_text_is_the_thinking() -> None:
    assert said(DETAILS_BACK, detail(text="check stock"), {"content": "ok"}) == [
        ThinkingDelta("check stock"),
        TextDelta("ok"),
        Artefact("vendor", '{"reasoning_details":[{"type":"reasoning.text","text":"check stock"}]}'),
        Finish("stop"),
    ]


def test_given_details_that_need_not_go_back_when_read_then_they_are_shown_and_not_kept() -> None:
    assert said(Replay(), detail(text="check stock"), {"content": "ok"}) == [
        ThinkingDelta("check stock"),
        TextDelta("ok"),
        Finish("stop"),
    ]


@pytest.mark.parametrize(
    ("fragments", "whole"),
    [
        (
            [{"type": "a.text", "text": "x"}, {"type": "a.text", "text": "y"}],
            '[{"type":"a.text","text":"xy"}]',
        ),
        (
            [{"type": "a.encrypted", "data": "x"}, {"type": "a.encrypted", "data": "y"}],
            '[{"type":"a.encrypted","data":"x"},{"type":"a.encrypted","data":"y"}]',
        ),
        (
            [
                {"type": "a.summary", "index": 0, "summary": "x"},
                {"type": "a.encrypted", "index": 0, "data": "d"},
                {"type": "a.summary", "index": 1, "summary": "z"},
                {"type": "a.summary", "index": 0, "summary": "y", "id": None},
            ],
            '[{"type":"a.summary","index":0,"summary":"xy","id":null},{"type":"a.encrypted","index":0,"data":"d"},'
            '{"type":"a.summary","index":1,"summary":"z"}]',
        ),
        (
            [
                {"type": "a.text", "index": 0, "text": "x", "signature": "s"},
                {"index": 0, "type": "a.text", "text": None},
            ],
            '[{"type":"a.text","index":0,"text":"x","signature":"s"}]',
        ),
        (
            [{"type": "a.text", "big": 12345678901234567890123}],
            '[{"type":"a.text","big":12345678901234567890123}]',
        ),
    ],
)
def test_given_fragments_of_details_when_merged_then_entries_are_by_type_and_index(
    fragments: list[dict[str, object]], whole: str
) -> None:
    events = said(DETAILS_BACK, *({"reasoning_details": [one]} for one in fragments))
    assert [one for one in events if isinstance(one, Artefact)] == [
        Artefact("vendor", f'{{"reasoning_details":{whole}}}')
    ]


@pytest.mark.parametrize("odd", [{}, "x", 5, [1], None])
def test_given_details_of_another_form_when_read_then_they_are_passed_over(odd: object) -> None:
    assert said(DETAILS_BACK, {"reasoning_details": odd, "content": "ok"}) == [TextDelta("ok"), Finish("stop")]


async def test_given_reasoning_in_tags_that_is_not_shown_when_its_tool_has_run_then_it_goes_back_in_tags() -> None:
    call = call_event({"index": 0, "id": "c1", "function": {"name": "stock", "arguments": "{}"}})
    answer = Raw([stream(event({"content": "<think>Need it.</think>Let me see."}), call, finish="tool_calls")])
    with ModelServer([answer]) as server:
        provider = MiniMaxProvider("sk-test-key-1", base_url=server.base_url)
        request = ask(expose_reasoning=False, reasoning_split=False)
        events = await collect(provider.stream(request))
        assert not any(isinstance(one, ThinkingDelta) for one in events)
        kept = [Opaque(one.dialect, one.text) for one in events if isinstance(one, Artefact)]
        block = AssistantBlock((*kept, Text("Let me see."), CallBlock("c1", "stock", "{}")), "minimax", "MiniMax-M3")
        turns = (*request.turns, block, ResultBlock("c1", "stock", (Text("3"),)))
        await collect(provider.stream(msgspec.structs.replace(request, turns=turns)))
        await provider.aclose()
        sent = server.requests[1].body["messages"]
    assert isinstance(sent, list)
    assert sent[2]["content"] == "<think>\nNeed it.\n</think>\n\nLet me see."
    assert sent[2].keys() == {"role", "content", "tool_calls"}
