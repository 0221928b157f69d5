"""Qwen, DeepSeek, MiniMax and Kimi: what each is sent, and what only it says."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from wires import Said, ask, collect, event, listen, put_together, stream

from deepstrike.errors import (
    BadRequest,
    ConfigError,
    ContentFiltered,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Truncated,
    Unauthorized,
)
from deepstrike.providers.base import Artefact, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.qwen import QwenProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.stream import TextDelta
from deepstrike.testing.server import End, ModelServer, Raw
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

    from deepstrike.providers.service import ServiceProvider
    from deepstrike.wire.message import Turn

KEY = "sk-test-key-1"
ADD = ToolSpec("add", "Add.", '{"type":"object"}')
NEVER = RetryConfig(max_retries=0)
GOAL = UserBlock((Text("a"),))


def body_of(
    provider: ServiceProvider,
    turns: Sequence[Turn] = (GOAL,),
    *,
    tools: tuple[ToolSpec, ...] = (),
    limit: int | None = None,
    extensions: Mapping[str, object] | None = None,
) -> dict[str, object]:
    request = ModelRequest("", "", turns, tools, extensions or {}, limit)
    found = json.loads(provider._question(request).body)
    assert isinstance(found, dict)
    return found


def fields(provider: ServiceProvider, **extensions: object) -> dict[str, object]:
    """What is sent beyond model, messages and streaming."""
    plain = ("model", "messages", "stream", "stream_options")
    return {name: value for name, value in body_of(provider, extensions=extensions).items() if name not in plain}


@pytest.mark.parametrize(
    ("provider", "extensions", "sent"),
    [
        (DeepSeekProvider(KEY), {}, {"thinking": {"type": "enabled"}}),
        (DeepSeekProvider(KEY), {"enable_thinking": False}, {"thinking": {"type": "disabled"}}),
        (DeepSeekProvider(KEY, "deepseek-v5"), {}, {}),
        (QwenProvider(KEY), {}, {"enable_thinking": True}),
        (QwenProvider(KEY, "qwen-plus"), {}, {"enable_thinking": False}),
        (
            QwenProvider(KEY, "qwen-plus"),
            {"enable_thinking": True, "thinking_budget": 9},
            {"enable_thinking": True, "thinking_budget": 9},
        ),
        (QwenProvider(KEY, "qwen3-4b"), {}, {}),
        (MiniMaxProvider(KEY), {}, {"reasoning_split": True, "thinking": {"type": "adaptive"}}),
        (
            MiniMaxProvider(KEY),
            {"enable_thinking": False, "reasoning_split": False},
            {"reasoning_split": False, "thinking": {"type": "disabled"}},
        ),
        (MiniMaxProvider(KEY, "MiniMax-M2.7"), {}, {"reasoning_split": True}),
        (KimiProvider(KEY), {}, {"thinking": {"type": "enabled"}}),
        (
            KimiProvider(KEY),
            {"enable_thinking": True, "preserve_thinking": True},
            {"thinking": {"type": "enabled", "keep": "all"}},
        ),
        (KimiProvider(KEY, "kimi-k3"), {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    ],
)
def test_given_a_vendor_when_asked_then_its_thinking_switch_is_always_said_where_the_table_knows_it(
    provider: ServiceProvider, extensions: Mapping[str, object], sent: Mapping[str, object]
) -> None:
    assert fields(provider, **extensions) == sent


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        (DeepSeekProvider(KEY), "max_tokens"),
        (QwenProvider(KEY), "max_tokens"),
        (MiniMaxProvider(KEY), "max_completion_tokens"),
        (KimiProvider(KEY, "kimi-next", base_url="http://127.0.0.1:1/v1"), "max_completion_tokens"),
    ],
)
def test_given_an_output_limit_when_sent_then_its_name_is_the_vendors(provider: ServiceProvider, name: str) -> None:
    assert body_of(provider, limit=9)[name] == 9


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        (KimiProvider(KEY), "temperature"),
        (MiniMaxProvider(KEY), "seed"),
        (MiniMaxProvider(KEY, "MiniMax-M2.7"), "enable_thinking"),
    ],
)
def test_given_a_field_that_the_model_refuses_when_sent_then_it_is_dropped_with_a_warning(
    provider: ServiceProvider, name: str
) -> None:
    with pytest.warns(UserWarning, match=f"'{name}' was dropped: the model"):
        sent = fields(provider, **{name: True if name == "enable_thinking" else 1})
    assert name not in sent


@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        (DeepSeekProvider, "DEEPSEEK_API_KEY"),
        (QwenProvider, "DASHSCOPE_API_KEY"),
        (MiniMaxProvider, "MINIMAX_API_KEY"),
        (KimiProvider, "MOONSHOT_API_KEY"),
    ],
)
def test_given_no_key_when_made_then_the_error_names_the_variable_and_the_environment_is_read(
    kind: type[DeepSeekProvider | QwenProvider | MiniMaxProvider | KimiProvider],
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=variable):
        kind()
    monkeypatch.setenv(variable, KEY)
    assert KEY not in repr(kind())


CALL = CallBlock("c1", "add", "{}")
CALLED = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
RESULT = ResultBlock("c1", "add", (Text("3"),))


def test_given_the_reasoner_of_the_first_generation_when_asked_then_it_gets_neither_tools_nor_reasoning() -> None:
    provider = DeepSeekProvider(KEY, "deepseek-reasoner")
    request = ModelRequest("", "", (GOAL, AssistantBlock((Thinking("hm"), Text("b")), "deepseek")), (ADD,), {})
    question = provider._question(request)
    assert json.loads(question.body) == {
        "model": "deepseek-reasoner",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    }
    assert question.notices == (
        Notice("tools_dropped", "deepseek-reasoner takes no tools, so none of the 1 was offered to it"),
    )


def test_given_a_current_thinking_model_when_asked_then_it_gets_its_tools() -> None:
    assert "tools" in body_of(DeepSeekProvider(KEY, "deepseek-v4-flash"), tools=(ADD,))


@pytest.mark.parametrize(
    ("provider", "extensions", "choice"),
    [
        (DeepSeekProvider(KEY), {"tool_choice": "required"}, None),
        (DeepSeekProvider(KEY), {"tool_choice": "auto"}, "auto"),
        (DeepSeekProvider(KEY), {"tool_choice": "required", "enable_thinking": False}, "required"),
        (QwenProvider(KEY), {"tool_choice": {"type": "function"}}, None),
        (QwenProvider(KEY, "qwen-plus"), {"tool_choice": "required"}, "required"),
        (QwenProvider(KEY, "qwen-plus"), {"tool_choice": "required", "enable_thinking": True}, None),
        (KimiProvider(KEY, "kimi-k2.7-code"), {"tool_choice": "required"}, None),
        (KimiProvider(KEY, "kimi-k3"), {"tool_choice": "required"}, "required"),
        (KimiProvider(KEY, "kimi-k3"), {"tool_choice": {"type": "function"}}, None),
    ],
)
def test_given_a_forced_call_when_the_model_thinks_and_refuses_it_then_it_is_left_out_and_told(
    provider: ServiceProvider, extensions: Mapping[str, object], choice: object
) -> None:
    question = provider._question(ModelRequest("", "", (GOAL,), (ADD,), extensions))
    assert json.loads(question.body).get("tool_choice") == choice
    left_out = choice is None
    assert [one.code for one in question.notices] == (["field_dropped"] if left_out else [])


@pytest.mark.parametrize("kind", [DeepSeekProvider, KimiProvider])
def test_given_tool_turns_with_and_without_reasoning_when_sent_back_then_each_has_the_field(
    kind: type[DeepSeekProvider | KimiProvider],
) -> None:
    provider = kind(KEY)
    turns: list[Turn] = [
        GOAL,
        AssistantBlock((CALL,), "another", "x"),
        RESULT,
        AssistantBlock((Thinking("Need it."), CallBlock("c2", "add", "{}")), provider.dialect, provider.info.id),
        ResultBlock("c2", "add", (Text("4"),)),
    ]
    sent = body_of(provider, turns)["messages"]
    assert isinstance(sent, list)
    assert [one.get("reasoning_content") for one in sent if one["role"] == "assistant"] == ["", "Need it."]
    assert [one["content"] for one in sent if one["role"] == "assistant"] == ["", ""]


def test_given_ids_when_sent_back_to_kimi_then_its_own_are_as_they_came_and_others_have_its_form() -> None:
    given = ["functions.add:0", "search:12", "c1", "call_7_0", "toolu_01ABC"]
    calls = tuple(CallBlock(one, "add", "{}") for one in given)
    turns: list[Turn] = [GOAL, AssistantBlock(calls), *(ResultBlock(one, "add", (Text("3"),)) for one in given)]
    sent = body_of(KimiProvider(KEY), turns)["messages"]
    assert isinstance(sent, list)
    ids = [one["id"] for one in sent[1]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in sent[2:]]
    assert ids[:3] == given[:3]
    assert all(re.fullmatch(r"functions\.add:\d{9}", one) for one in ids[3:5])
    assert len(set(ids)) == len(given)


PNG = Image("image/png", "QUJD")
PDF = File("application/pdf", "QUJD", "a.pdf")


def test_given_a_model_that_sees_nothing_when_sent_images_then_words_stand_there_and_a_notice_says_so() -> None:
    provider = DeepSeekProvider(KEY, "deepseek-v4-pro")
    turns = (UserBlock((Text("see"), PNG)), AssistantBlock((CALL,)), ResultBlock("c1", "add", (PNG, PDF)))
    request = ModelRequest("", "", turns, (), {})
    question = provider._question(request)
    sent = json.loads(question.body)["messages"]
    image = "[an image (image/png) was left out: this model takes none]"
    assert [one["content"] for one in sent] == [
        f"see\n{image}",
        "",
        f"{image}\n[the file a.pdf (application/pdf) was left out: this service takes none]",
    ]
    assert question.notices == (
        Notice("attachment_dropped", "3 images or files were not sent: deepseek-v4-pro takes none"),
    )


def test_given_a_model_that_sees_when_sent_an_image_then_it_gets_it() -> None:
    sent = body_of(MiniMaxProvider(KEY), (UserBlock((PNG,)),))["messages"]
    assert sent == [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]}
    ]


def minimax(server: ModelServer, model: str = "MiniMax-M2.7", retry: RetryConfig = NEVER) -> MiniMaxProvider:
    return MiniMaxProvider(KEY, model, base_url=server.base_url, retry_config=retry)


def base_resp(code: int, text: str) -> bytes:
    return json.dumps({"choices": None, "base_resp": {"status_code": code, "status_msg": text}}).encode()


@pytest.mark.parametrize("framed", [True, False])
@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (1000, "unknown error", Overloaded),
        (1002, "rate limit", RateLimited),
        (1004, "not authorized", Unauthorized),
        (1008, "insufficient balance", QuotaExhausted),
        (1026, "input new_sensitive", ContentFiltered),
        (1027, "output new_sensitive", ContentFiltered),
        (1033, "mysql failed", Overloaded),
        (1039, "token limit", ContextOverflow),
        (1041, "too many connections", RateLimited),
        (2013, "invalid params", BadRequest),
        (2013, "invalid params, context window exceeds limit", ContextOverflow),
        (2056, "usage limit exceeded", QuotaExhausted),
        (2061, "your plan does not support model MiniMax-M1", Unauthorized),
    ],
)
async def test_given_an_error_of_minimax_inside_a_good_answer_when_it_comes_then_it_is_raised_as_what_it_is(
    code: int, text: str, kind: type[ProviderError], framed: bool
) -> None:
    body = base_resp(code, text)
    kinds = {"content-type": "text/event-stream" if framed else "application/json"}
    with ModelServer([Raw([b"data: " + body + b"\n\n" if framed else body], headers=kinds)]) as server:
        with pytest.raises(kind, match=text) as caught:
            await collect(minimax(server).stream(ask()))
        assert type(caught.value) is kind
        assert caught.value.retryable is (kind in (Overloaded, RateLimited))


WELL = {"status_code": 0, "status_msg": ""}
COUNTS = {"prompt_tokens": 9, "completion_tokens": 4, "total_characters": 0}


async def test_given_minimaxs_answer_when_it_ends_with_counts_and_without_a_marker_then_it_is_whole() -> None:
    split = {"reasoning_content": "hm", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hm"}]}
    zeros = {"total_tokens": 0, "total_characters": 0}
    body = event({"role": "assistant", "name": "MiniMax AI", "audio_content": "", **split}, usage=zeros)
    body += event({"content": "fine", "role": "assistant"}, "stop", usage=None)
    body += b"data: " + json.dumps({"choices": [], "usage": COUNTS, "base_resp": WELL}).encode() + b"\n\n"
    with ModelServer([Raw([body])]) as server:
        events = await collect(minimax(server).stream(ask()))
    said = put_together(events)
    assert (said.text, said.thinking, said.finish) == ("fine", "hm", "stop")
    assert said.usage is not None
    assert (said.usage.input, said.usage.output) == (9, 4)
    details = '{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm"}]}'
    assert [one for one in events if isinstance(one, Artefact)] == [Artefact("minimax", details)]


@pytest.mark.parametrize("streamed_calls", [True, False])
async def test_given_a_whole_message_behind_the_deltas_when_it_repeats_them_then_nothing_is_said_twice(
    streamed_calls: bool,
) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{}"}}
    told = {"content": "Let me add.", "reasoning_content": "hm"}
    body = event({**told, **({"tool_calls": [call]} if streamed_calls else {})})
    message = {"role": "assistant", **told, "tool_calls": [call]}
    last = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    body += b"data: " + json.dumps({**last, "usage": COUNTS, "base_resp": WELL}).encode() + b"\n\n"
    with ModelServer([Raw([body])]) as server:
        said = put_together(await collect(minimax(server, "MiniMax-M3").stream(ask())))
    assert (said.text, said.thinking, said.calls) == ("Let me add.", "hm", (ToolCall("c1", "add", "{}"),))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (["<think>easy", " one</think>", "Paris."], Said("Paris.", "easy one", finish="stop")),
        (["easy one</think>Paris."], Said("easy oneParis.", finish="stop")),
    ],
)
async def test_given_minimaxs_reasoning_in_tags_when_read_then_no_tag_reaches_the_user(
    content: list[str], said: Said
) -> None:
    with ModelServer([Raw([stream(*(event({"content": one}) for one in content))])] * 2) as server:
        assert put_together(await collect(minimax(server).stream(ask()))) == said
        raw = put_together(await collect(minimax(server).stream(ask(split_think=False))))
        assert raw.text == "".join(content)


def test_given_minimaxs_details_when_sent_back_then_they_stand_under_their_own_name() -> None:
    details = '{"reasoning_details":[{"type":"reasoning.text","text":"check stock"}]}'
    turns: list[Turn] = [
        GOAL,
        AssistantBlock((Thinking("check stock"), Opaque("minimax", details), CALL), "minimax"),
        RESULT,
    ]
    sent = body_of(MiniMaxProvider(KEY), turns)["messages"]
    assert isinstance(sent, list)
    assert sent[1] == {
        "role": "assistant",
        "content": "",
        "reasoning_details": [{"type": "reasoning.text", "text": "check stock"}],
        "tool_calls": CALLED,
    }


async def test_given_kimis_counts_inside_the_choice_when_read_then_they_count() -> None:
    usage = {"prompt_tokens": 18, "completion_tokens": 50, "cached_tokens": 12}
    chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}
    body = event({"content": "a"}).replace(b"data: ", b"data:") + b"data:" + json.dumps(chunk).encode() + b"\n\n"
    with ModelServer([Raw([body])]) as server:
        provider = KimiProvider(KEY, base_url=server.base_url)
        said = put_together(await collect(provider.stream(ask())))
    assert said.usage is not None
    assert (said.usage.input, said.usage.output, said.usage.cached) == (18, 50, 12)


async def test_given_deepseeks_finish_for_want_of_resources_when_it_comes_then_it_is_tried_again() -> None:
    broken = Raw([event({"reasoning_content": "hm"}, "insufficient_system_resource")])
    with ModelServer([broken, "fine"]) as server:
        retry = RetryConfig(max_retries=1, base_delay=0)
        provider = DeepSeekProvider(KEY, base_url=server.base_url, retry_config=retry)
        said = put_together(await collect(provider.stream(ask())))
    assert (said.text, server.accepted) == ("fine", 2)


@pytest.mark.parametrize("end", ["fin", "rst", "complete"])
async def test_given_a_cut_answer_of_a_vendor_when_it_breaks_off_then_it_is_never_finished(end: End) -> None:
    seen: list[ModelEvent] = []
    with ModelServer([Raw([event({"content": "The cap"})], end=end)]) as server, pytest.raises(Truncated):
        await listen(minimax(server).stream(ask()), seen)
    assert [one for one in seen if not isinstance(one, TextDelta)] == []
