"""OpenAIProvider over the Responses wire, on real loopback sockets."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as replaced
from responses_wires import (
    ResponsesServer,
    called_in_pieces,
    compact,
    completed,
    delta,
    done,
    event,
    reasoning,
    said_in_pieces,
    usage,
)
from wires import Said, ask, collect, listen, put_together

from deepstrike.errors import BadRequest, ConfigError, ContentFiltered, QuotaExhausted, Truncated
from deepstrike.options import RuntimeOptions
from deepstrike.providers.base import Memo, ModelEvent, ModelInfo, ModelRequest, OutputSchema, ToolCall
from deepstrike.providers.extensions import CHAT_FIELDS
from deepstrike.providers.models import register
from deepstrike.providers.openai import OPENAI_CHAT, OPENAI_RESPONSES, Api, OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.tables.openai import ROWS
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.runner import RuntimeRunner
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.stream import RetryEvent, TextDelta
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    Image,
    Notice,
    Opaque,
    ResultBlock,
    Text,
    ToolSpec,
    Usage,
    UserBlock,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "sk-test-0123456789abcdef"
UNVERIFIED = {
    "message": "Your organization must be verified to generate reasoning summaries.",
    "type": "invalid_request_error",
    "param": "reasoning.summary",
    "code": "unsupported_value",
}
UNREADABLE = {
    "message": "The encrypted content gAAA could not be verified.",
    "type": "invalid_request_error",
    "param": None,
    "code": "invalid_encrypted_content",
}
SCHEMA = {"type": "object", "properties": {"b": {}, "a": {}}}
OK = said_in_pieces(0, "ok") + completed()


def provider(
    server: ResponsesServer, model: str = "gpt-6-sol", api: Api = "responses", tries: int = 0
) -> OpenAIProvider:
    """A provider with a breaker of its own: port numbers come back, and a shared breaker would remember them."""
    retry = RetryConfig(max_retries=tries, base_delay=0.001)
    breaker = CircuitBreaker(retry)
    return OpenAIProvider(KEY, model, api=api, base_url=server.base_url, retry_config=retry, circuit_breaker=breaker)


async def said(model: OpenAIProvider, request: ModelRequest | None = None) -> Said:
    return put_together(await collect(model.stream(request or ask())))


def ask_with(extensions: Mapping[str, object]) -> ModelRequest:
    return ModelRequest("Be brief.", "", (UserBlock((Text("hi"),)),), (), extensions)


def history(*items: str) -> tuple[UserBlock, AssistantBlock, ResultBlock]:
    """A turn with reasoning and a call, in the form in which the log keeps it."""
    frame = compact({"id": "fc_1", "type": "function_call", "status": "completed"})
    own = [Opaque("openai-responses", one) for one in (*items, frame)]
    block = AssistantBlock((*own[:-1], CallBlock("c1", "f", "{}"), own[-1]), "openai-responses", "gpt-6-sol")
    return UserBlock((Text("go"),)), block, ResultBlock("c1", "f", (Text("r"),))


async def test_given_a_responses_server_when_asked_then_text_calls_and_usage_come_over_the_socket() -> None:
    body = (
        said_in_pieces(0, "Let me see.") + called_in_pieces(1, "add", '{"x":17}', "c1") + completed(usage=usage(20, 9))
    )
    async with ResponsesServer(body) as server:
        model = provider(server)
        assert await said(model) == Said(
            "Let me see.", "", (ToolCall("c1", "add", '{"x":17}'),), Usage(20, 9), "tool_calls"
        )
        await model.aclose()
    assert server.paths == ["/v1/responses"]
    assert f"authorization: Bearer {KEY}" in server.headers[0]
    assert server.requests[0] == {
        "model": "gpt-6-sol",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.parametrize(
    ("model", "base_url", "dialect"),
    [
        ("gpt-5-mini", None, "openai-chat"),
        ("gpt-5.2-2025-12-11", None, "openai-chat"),
        ("gpt-4o", None, "openai-chat"),
        ("o3", None, "openai-chat"),
        ("gpt-5.4", None, "openai-responses"),
        ("gpt-5.5-2026-04-23", None, "openai-responses"),
        ("gpt-6.2-sol", None, "openai-responses"),
        ("gpt-9-unheard-of", None, "openai-responses"),
        ("gpt-6-sol", "https://api.openai.com/v1/", "openai-responses"),
        ("gpt-6-sol", "https://eu.api.openai.com/v1", "openai-responses"),
        ("gpt-6-sol", "https://my.gateway.test/v1", "openai-chat"),
        ("gpt-6-sol", "https://notapi.openai.com.test/v1", "openai-chat"),
        ("gpt-6-sol", "https://xapi.openai.com/v1", "openai-chat"),
    ],
)
def test_given_a_model_and_an_address_when_api_is_auto_then_the_wire_that_works_is_chosen(
    model: str, base_url: str | None, dialect: str
) -> None:
    assert OpenAIProvider(KEY, model, base_url=base_url).dialect == dialect


def test_given_an_api_when_named_then_it_is_used_at_any_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OpenAIProvider(KEY, "gpt-6-sol", api="chat").dialect == "openai-chat"
    assert OpenAIProvider(KEY, "gpt-4o", api="responses").dialect == "openai-responses"
    assert OpenAIProvider(KEY, "local", api="responses", base_url="http://127.0.0.1:1/v1").dialect == "openai-responses"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert OpenAIProvider(KEY, "gpt-6-sol").dialect == "openai-chat"
    wrong: Api = "telex"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="api must be 'auto', 'chat' or 'responses', not 'telex'"):
        OpenAIProvider(KEY, "gpt-6-sol", api=wrong)


def test_given_a_row_of_the_users_own_when_the_model_is_known_then_its_wire_stays() -> None:
    register(ModelInfo("gpt-4.1-nano", window=5_000))
    try:
        made = OpenAIProvider(KEY, "gpt-4.1-nano")
        assert (made.info.window, made.dialect) == (5_000, "openai-chat")
    finally:
        register(ROWS["gpt-4.1-nano"])


async def test_given_every_extension_when_asked_then_each_stands_where_the_wire_wants_it() -> None:
    given = {
        "reasoning_effort": "high",
        "reasoning_summary": "detailed",
        "reasoning_context": "all_turns",
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
        "max_output_tokens": 900,
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "safety_identifier": "s",
        "service_tier": "flex",
        "metadata": {"a": "b"},
        "strict_tools": True,
        "extra_body": {"truncation": "auto", "reasoning": {"mode": "pro"}},
    }
    request = replaced(ask_with(given), tools=(ToolSpec("f", "", '{"type":"object"}'),))
    async with ResponsesServer(OK) as server:
        await said(provider(server), request)
    assert b'"schema":{"type":"object","properties":{"b":{},"a":{}}}' in server.bodies[0]
    assert server.requests[0] == {
        "model": "gpt-6-sol",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "detailed", "context": "all_turns", "mode": "pro"},
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}},
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "max_output_tokens": 900,
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "safety_identifier": "s",
        "service_tier": "flex",
        "metadata": {"a": "b"},
        "truncation": "auto",
        "tools": [
            {"type": "function", "name": "f", "description": "", "parameters": {"type": "object"}, "strict": False}
        ],
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "hi"}],
    }


def test_given_a_field_of_the_other_wire_when_admitted_then_it_is_dropped_with_a_warning() -> None:
    on_responses, on_chat = OpenAIProvider(KEY, "gpt-6-sol"), OpenAIProvider(KEY, "gpt-5-mini")
    with pytest.warns(UserWarning, match=r"'seed' was dropped: 'gpt-6-sol' .*api='chat'"):
        assert on_responses.admit({"seed": 1, "verbosity": "low"}) == {"verbosity": "low"}
    with pytest.warns(UserWarning, match=r"'reasoning_summary' was dropped: 'gpt-5-mini' .*api='responses'"):
        assert on_chat.admit({"reasoning_summary": "auto", "seed": 1}) == {"seed": 1}
    with pytest.raises(ConfigError, match="did you mean 'reasoning_summary'"):
        on_responses.admit({"reasoning_sumary": "auto"})
    with pytest.warns(UserWarning, match="'prompt_cache_options' was dropped: the model 'gpt-5-mini' refuses it"):
        assert on_chat.admit({"prompt_cache_options": {"ttl": "30m"}}) == {}
    assert on_responses.admit({"prompt_cache_options": {"ttl": "30m"}}) == {"prompt_cache_options": {"ttl": "30m"}}
    assert CHAT_FIELDS.keys() <= OPENAI_RESPONSES.fields.keys() == OPENAI_CHAT.fields.keys()


def test_given_the_effort_none_when_the_model_always_reasons_then_it_is_dropped_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="'reasoning_effort' was dropped: the model 'gpt-6.2-sol' cannot do without"):
        assert OpenAIProvider(KEY, "gpt-6.2-sol").admit({"reasoning_effort": "none"}) == {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert OpenAIProvider(KEY, "gpt-5-mini").admit({"reasoning_effort": "none", "temperature": 0}) == {}
    assert [str(one.message).split()[1] for one in caught] == ["'reasoning_effort'", "'temperature'"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = {"reasoning_effort": "none", "temperature": 0.1}
        assert OpenAIProvider(KEY, "gpt-6-sol").admit(given) == given


@pytest.mark.parametrize(
    ("model", "extensions"),
    [
        ("gpt-6-sol", {"expose_reasoning": False}),
        ("gpt-6-sol", {"reasoning_effort": "none"}),
        ("gpt-4o", {}),
    ],
)
async def test_given_no_reasoning_to_show_when_asked_then_no_summary_is_asked_for(
    model: str, extensions: dict[str, object]
) -> None:
    async with ResponsesServer(OK) as server:
        await said(provider(server, model), ask_with(extensions))
    assert "summary" not in json.dumps(server.requests[0])


async def test_given_an_unverified_organisation_when_refused_then_it_is_asked_without_summary_from_then_on() -> None:
    async with ResponsesServer((400, UNVERIFIED), OK, OK) as server:
        model = provider(server)
        events = await collect(model.stream(ask()))
        assert events[0] == Notice(
            "summary_refused", "the service shows reasoning summaries to verified organisations only"
        )
        assert put_together(events[1:]) == Said("ok", finish="stop")
        assert await said(model) == Said("ok", finish="stop")
    assert [body.get("reasoning") for body in server.requests] == [{"summary": "auto"}, None, None]


async def test_given_a_summary_that_the_user_asked_for_when_refused_then_the_error_is_told() -> None:
    async with ResponsesServer((400, UNVERIFIED)) as server:
        with pytest.raises(BadRequest, match="must be verified") as caught:
            await said(provider(server), ask(reasoning_summary="detailed"))
    assert caught.value.status == 400
    assert len(server.bodies) == 1


async def test_given_two_runs_when_both_were_encoded_with_a_summary_then_each_is_asked_again_without() -> None:
    async with ResponsesServer((400, UNVERIFIED), (400, UNVERIFIED), OK, OK) as server:
        model = provider(server)
        one, two = model.stream(ask()), model.stream(ask())
        first = [await anext(one), await anext(two)]
        assert [type(event) for event in first] == [Notice, Notice]
        assert put_together(await collect(one)) == put_together(await collect(two)) == Said("ok", finish="stop")


async def test_given_reasoning_that_cannot_be_read_any_more_when_refused_then_it_is_left_out() -> None:
    turns = history(compact(reasoning()))
    request = ModelRequest("", "", turns, (), {}, memo=Memo())
    async with ResponsesServer((400, UNREADABLE), OK, OK) as server:
        model = provider(server)
        events = await collect(model.stream(request))
        assert events[0] == Notice(
            "artefact_dropped", "earlier reasoning is not sent: the service cannot read it any more"
        )
        assert put_together(events[1:]) == Said("ok", finish="stop")
        more = replaced(request, turns=(*turns, UserBlock((Text("more"),))))
        assert await said(model, more) == Said("ok", finish="stop")
    first, second, third = (body["input"] for body in server.requests)
    assert isinstance(first, list)
    assert first[1] == reasoning()
    assert second == [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
    ]
    assert third == [*second, {"role": "user", "content": "more"}]
    assert server.bodies[2].startswith(server.bodies[1].removesuffix(b"]}"))


async def test_given_no_reasoning_in_the_history_when_so_refused_then_it_is_not_asked_again() -> None:
    async with ResponsesServer((400, UNREADABLE)) as server:
        with pytest.raises(BadRequest, match="could not be verified"):
            await said(provider(server))
    assert len(server.bodies) == 1


async def test_given_text_was_shown_when_reasoning_is_refused_then_nothing_is_repeated() -> None:
    body = delta(0, "So") + event("error", error=UNREADABLE)
    request = ModelRequest("", "", history(compact(reasoning())), (), {})
    seen: list[ModelEvent] = []
    async with ResponsesServer(body) as server:
        with pytest.raises(BadRequest):
            await listen(provider(server).stream(request), seen)
    assert seen == [TextDelta("So")]


async def test_given_an_answer_that_breaks_off_before_its_text_when_asked_then_it_is_asked_again() -> None:
    cut = done(0, reasoning()) + called_in_pieces(1, "f", "{}")
    async with ResponsesServer(cut, OK) as server:
        events = await collect(provider(server, tries=1).stream(ask()))
    assert isinstance(events[0], RetryEvent)
    assert put_together(events[1:]) == Said("ok", finish="stop")
    async with ResponsesServer(said_in_pieces(0, "ok")) as server:
        with pytest.raises(Truncated):
            await said(provider(server))


async def test_given_a_quota_failure_inside_a_good_stream_when_asked_then_it_is_final() -> None:
    gone = {"type": "insufficient_quota", "code": "insufficient_quota", "message": f"no credit for {KEY}"}
    async with ResponsesServer(event("error", error=gone)) as server:
        with pytest.raises(QuotaExhausted, match="no credit") as caught:
            await said(provider(server, tries=3))
    assert KEY not in str(caught.value)
    assert len(server.bodies) == 1


async def test_given_tools_and_reasoning_on_chat_when_refused_then_the_error_says_what_to_do() -> None:
    refused = {
        "message": "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.",
        "type": "invalid_request_error",
        "param": "reasoning_effort",
        "code": None,
    }
    async with ResponsesServer((400, refused)) as server:
        with pytest.raises(BadRequest, match=r"not supported for gpt-5\.4.*pass api='responses'"):
            await said(provider(server, "gpt-5.4", "chat"))
    assert server.paths == ["/v1/chat/completions"]


async def test_given_a_server_of_azures_kind_when_asked_then_its_header_query_and_errors_are_understood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    filtered = {
        "code": "content_filter",
        "message": "no",
        "param": "prompt",
        "innererror": {"code": "X"},
        "status": 400,
    }
    async with ResponsesServer(OK, (400, filtered)) as server:
        model = OpenAIProvider(
            "",
            "my-deployment",
            api="responses",
            base_url=f"{server.base_url}?api-version=preview",
            headers={"api-key": "azure-secret-1234"},
        )
        assert await said(model) == Said("ok", finish="stop")
        with pytest.raises(ContentFiltered):
            await said(model)
    assert server.paths == ["/v1/responses?api-version=preview"] * 2
    assert "api-key: azure-secret-1234" in server.headers[0]
    assert "authorization" not in server.headers[0].lower()


async def test_given_an_output_schema_and_an_image_when_asked_then_both_go_out() -> None:
    output = OutputSchema("answer", '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')
    turns = (UserBlock((Text("what?"), Image("image/png", "QUJD"))),)
    request = ModelRequest("", "", turns, (), {"verbosity": "low"}, output=output)
    async with ResponsesServer(said_in_pieces(0, '{"n":1}') + completed()) as server:
        assert await said(provider(server), request) == Said('{"n":1}', finish="stop")
    schema = {**json.loads(output.schema), "additionalProperties": False}
    form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
    assert server.requests[0]["text"] == {"verbosity": "low", "format": form}
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    assert server.requests[0]["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "what?"}, image]}
    ]


async def test_given_a_session_in_a_log_when_another_runner_goes_on_then_reasoning_goes_back_byte_by_byte() -> None:
    secret = reasoning("rs_0", "gAAA-é+/=", "Think.")
    first = (
        done(0, secret)
        + said_in_pieces(1, "One moment.", phase="commentary")
        + called_in_pieces(2, "nosuch", "{}", "c1")
    )
    second = done(0, reasoning("rs_1", "gBBB")) + said_in_pieces(1, "Done.", phase="final_answer")
    log = InMemorySessionLog()
    async with ResponsesServer(first + completed(usage=usage()), second + completed(usage=usage()), OK) as server:
        for goal in ("go", "again"):
            runner = RuntimeRunner(RuntimeOptions(provider=provider(server), session_log=log, max_tokens=20_000))
            result = await runner.run(goal, session_id="s")
            assert result.status == "completed"
    inputs = [body["input"] for body in server.requests]
    assert isinstance(inputs[2], list)
    kinds = [(one.get("type") or one["role"], one.get("phase")) for one in inputs[2]]
    assert kinds == [
        ("user", None),
        ("reasoning", None),
        ("message", "commentary"),
        ("function_call", None),
        ("function_call_output", None),
        ("reasoning", None),
        ("message", "final_answer"),
        ("user", None),
    ]
    assert compact(secret).encode() in server.bodies[2]
    logged = b"".join(await log.read("s"))
    assert (logged.count(b"One moment."), logged.count(b"gBBB")) == (1, 1)


def test_given_the_table_when_read_then_every_row_has_its_own_id_and_sound_limits() -> None:
    for name, info in ROWS.items():
        assert replace(info, id=name) == info
        assert info.max_output is not None
        assert 0 < info.max_output < info.window
