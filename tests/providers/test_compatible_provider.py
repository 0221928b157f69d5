"""Compatible servers: which profile an address gets, and what each changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from wires import DONE, Said, ask, call_event, collect, event, listen, put_together, stream

from deepstrike.errors import BadRequest, ConfigError, ContextOverflow, Overloaded, ProviderError, Unauthorized
from deepstrike.providers.base import ModelEvent, ModelRequest, OutputSchema, ToolCall
from deepstrike.providers.compatible import OpenAICompatibleProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing.server import ModelServer, Raw, refusal
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    Opaque,
    ResultBlock,
    Text,
    Thinking,
    ToolSpec,
    Usage,
    UserBlock,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.testing.server import Received
    from deepstrike.wire.message import Turn

KEY = "sk-test-key-1"
NEVER = RetryConfig(max_retries=0)
ADD = ToolSpec("add", "Add.", '{"type":"object"}')
GOAL = UserBlock((Text("a"),))


def at(server: ModelServer, profile: str = "generic") -> OpenAICompatibleProvider:
    return OpenAICompatibleProvider(server.base_url, "m", KEY, profile=profile, retry_config=NEVER)


def body_of(
    profile: str,
    turns: Sequence[Turn] = (GOAL,),
    *,
    extensions: Mapping[str, object] | None = None,
    limit: int | None = None,
    output: OutputSchema | None = None,
) -> dict[str, object]:
    provider = OpenAICompatibleProvider("http://127.0.0.1:1/v1", "m", KEY, profile=profile)
    request = ModelRequest("", "", turns, (ADD,), extensions or {}, limit, output=output)
    found = json.loads(provider._question(request).body)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.groq.com/openai/v1/", "groq"),
        ("https://api.x.ai/v1", "xai-chat"),
        ("https://eu-west-1.api.x.ai/v1", "xai-chat"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://api.z.ai/api/paas/v4", "zai"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://api.openai.com/v1", "openai-chat"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.minimaxi.com/v1", "minimax"),
        ("https://api.kimi.com/coding/v1", "kimi"),
        ("http://localhost:8000/v1", "compatible"),
        ("https://notopenrouter.ai/v1", "compatible"),
    ],
)
def test_given_an_address_when_the_profile_is_auto_then_the_host_tells_whose_it_is(url: str, name: str) -> None:
    assert OpenAICompatibleProvider(url, "m", KEY).dialect == name
    assert OpenAICompatibleProvider(url, "m", KEY, profile="vllm").dialect == "vllm"


def test_given_a_profile_that_there_is_not_when_made_then_the_error_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'auto' or one of azure, deepseek, .* not 'llama'"):
        OpenAICompatibleProvider("http://localhost:1/v1", "m", profile="llama")
    with pytest.raises(ConfigError, match="base_url must be"):
        OpenAICompatibleProvider("", "m")


def test_given_no_key_when_the_server_is_ones_own_then_none_is_needed_and_a_hosted_one_names_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    OpenAICompatibleProvider("http://localhost:8000/v1", "m")
    with pytest.raises(ConfigError, match="OPENROUTER_API_KEY"):
        OpenAICompatibleProvider("https://openrouter.ai/api/v1", "m")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    provider = OpenAICompatibleProvider("http://localhost:8000/v1", "m")
    assert KEY not in str(provider._endpoint.transport.__dict__), "the key of OpenAI is nobody else's"


def test_given_the_generic_profile_when_asked_then_only_fields_that_all_servers_take_are_sent() -> None:
    assert body_of("generic", limit=5, output=OutputSchema("o", "{}")).keys() == {
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "max_tokens",
    }


@pytest.mark.parametrize("profile", ["generic", "vllm", "llamacpp", "lmstudio"])
@pytest.mark.parametrize("host", ["localhost", "gpu.example"])
def test_given_an_output_limit_when_a_server_of_ones_own_is_asked_then_it_has_the_name_that_all_know(
    profile: str, host: str
) -> None:
    provider = OpenAICompatibleProvider(f"http://{host}:8000/v1", "gpt-5-mini", profile=profile)
    request = ModelRequest("", "", (GOAL,), (), {}, 7)
    assert json.loads(provider._question(request).body)["max_tokens"] == 7


@pytest.mark.parametrize(
    ("profile", "extensions", "sent"),
    [
        ("vllm", {"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ("llamacpp", {"top_k": 4, "min_p": 0.1}, {"top_k": 4, "min_p": 0.1}),
        ("openrouter", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        (
            "openrouter",
            {"enable_thinking": True, "thinking_budget": 9, "provider": {"order": ["x"]}},
            {"reasoning": {"enabled": True, "max_tokens": 9}, "provider": {"order": ["x"]}},
        ),
        ("zai", {"enable_thinking": False}, {"thinking": {"type": "disabled"}}),
        ("mistral", {"seed": 3}, {"random_seed": 3}),
    ],
)
def test_given_a_servers_extensions_when_sent_then_they_stand_where_it_wants_them(
    profile: str, extensions: Mapping[str, object], sent: Mapping[str, object]
) -> None:
    plain = ("model", "messages", "stream", "stream_options", "tools")
    assert {k: v for k, v in body_of(profile, extensions=extensions).items() if k not in plain} == sent


STRICT = '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}'
LOOSE = '{"type":"object","additionalProperties":{"type":"integer"}}'


@pytest.mark.parametrize(("schema", "strict"), [(STRICT, True), (LOOSE, False)])
def test_given_a_schema_of_the_answer_when_the_service_takes_one_then_it_is_strict_where_the_schema_can_be(
    schema: str, strict: bool
) -> None:
    assert body_of("azure", output=OutputSchema("sum", schema))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "sum", "schema": json.loads(schema), "strict": strict},
    }
    assert "response_format" not in body_of("openrouter", output=OutputSchema("sum", schema))


async def test_given_azure_when_asked_then_the_key_has_its_own_header_and_the_query_stays() -> None:
    preamble = b'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}\n\n'
    with ModelServer([Raw([preamble, stream(event({"content": "fine"}))])]) as server:
        url = f"{server.base_url}/openai/deployments/d?api-version=2026-01-01"
        provider = OpenAICompatibleProvider(url, "m", KEY, profile="azure")
        assert put_together(await collect(provider.stream(ask()))).text == "fine"
    [received] = server.requests
    assert received.path == "/v1/openai/deployments/d/chat/completions?api-version=2026-01-01"
    assert (received.headers["api-key"], "authorization" in received.headers) == (KEY, False)


def refuses_counts(received: Received) -> str | Raw:
    if "stream_options" in received.body:
        return refusal(400, "Unrecognized request argument supplied: stream_options")
    return "fine"


async def test_given_a_server_that_refuses_stream_options_when_asked_then_it_is_asked_without_and_remembered() -> None:
    with ModelServer(otherwise=refuses_counts) as server:
        provider, request = at(server), ask()
        for _ in range(2):
            assert put_together(await collect(provider.stream(request))).text == "fine"
        assert put_together(await collect(at(server).stream(ask()))).text == "fine"
    assert ["stream_options" in one.body for one in server.requests] == [True, False, False, False]
    assert len({json.dumps(one.body["messages"]) for one in server.requests}) == 1


async def test_given_any_other_refusal_when_it_comes_then_it_is_raised() -> None:
    with ModelServer([refusal(400, "no such model")]) as server, pytest.raises(BadRequest, match="no such model"):
        await collect(at(server).stream(ask()))
    assert server.accepted == 1


@pytest.mark.parametrize(
    ("profile", "status", "body", "kind", "said"),
    [
        ("xai", 400, {"code": "invalid-argument", "error": "Incorrect API key provided."}, Unauthorized, "Incorrect"),
        ("llamacpp", 500, {"error": {"message": "tools param requires --jinja flag"}}, BadRequest, "--jinja"),
        ("llamacpp", 503, {"error": {"message": "Loading model", "type": "unavailable_error"}}, Overloaded, "Loading"),
        (
            "llamacpp",
            400,
            {"error": {"message": "too long", "type": "exceed_context_size_error", "n_ctx": 8}},
            ContextOverflow,
            "too long",
        ),
        (
            "openrouter",
            400,
            {
                "error": {
                    "code": 400,
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"message":"maximum context length is 8"}', "provider_name": "X"},
                }
            },
            ContextOverflow,
            "Provider returned error: .*maximum context length is 8",
        ),
        ("groq", 498, {"error": {"message": "capacity"}}, Overloaded, "capacity"),
        ("mistral", 401, {"detail": "Unauthorized"}, Unauthorized, "Unauthorized"),
        ("mistral", 422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, BadRequest, "field required"),
        ("zai", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, ContextOverflow, "Prompt"),
    ],
)
async def test_given_a_servers_own_error_when_it_comes_then_it_is_what_it_means(
    profile: str, status: int, body: object, kind: type[ProviderError], said: str
) -> None:
    answer = Raw([json.dumps(body).encode()], status, {"content-type": "application/json"})
    with ModelServer([answer]) as server, pytest.raises(ProviderError, match=said) as caught:
        await collect(at(server, profile).stream(ask()))
    assert type(caught.value) is kind


async def test_given_an_error_beside_a_finish_in_one_chunk_when_read_then_the_error_is_told() -> None:
    failed = {"code": 502, "message": "upstream is down"}
    body = event({"content": "The"}) + event({"content": " cap"}, "error", error=failed)
    seen: list[ModelEvent] = []
    with ModelServer([Raw([body])]) as server, pytest.raises(Overloaded, match="upstream is down"):
        await listen(at(server, "openrouter").stream(ask()), seen)
    assert seen == [TextDelta("The"), TextDelta(" cap")]


async def test_given_groqs_failed_tool_call_when_it_comes_as_an_event_then_it_is_a_bad_request() -> None:
    failed = {"error": {"message": "tool call did not match", "code": "tool_use_failed", "status_code": 400}}
    body = event({"reasoning": "hm"}) + b"event: error\ndata: " + json.dumps(failed).encode() + b"\n\n"
    seen: list[ModelEvent] = []
    with ModelServer([Raw([body])]) as server, pytest.raises(BadRequest, match="did not match"):
        await listen(at(server, "groq").stream(ask()), seen)
    assert seen == [ThinkingDelta("hm")]


async def test_given_groqs_counts_and_errors_beside_the_answer_when_read_then_they_count() -> None:
    counted = {"id": "r", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    body = event({"content": "a"}) + event({}, "stop", x_groq=counted)
    broken = event({"content": "a"}, None, x_groq={"id": "r", "error": "over capacity"})
    with ModelServer([Raw([body]), Raw([broken])]) as server:
        said = put_together(await collect(at(server, "groq").stream(ask())))
        assert said == Said("a", usage=Usage(7, 2), finish="stop")
        with pytest.raises(Overloaded, match="over capacity"):
            await collect(at(server, "groq").stream(ask()))


async def test_given_xais_counts_when_read_then_the_reasoning_is_added_to_the_output() -> None:
    usage = {"prompt_tokens": 307, "completion_tokens": 26, "completion_tokens_details": {"reasoning_tokens": 227}}
    whole = {"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"x":1}'}}
    body = event({"reasoning_content": "hm"}) + call_event(whole, finish="tool_calls")
    body += b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n" + DONE
    with ModelServer([Raw([body])]) as server:
        said = put_together(await collect(at(server, "xai").stream(ask())))
    calls = (ToolCall("c", "add", '{"x":1}'),)
    assert said == Said("", "hm", calls, Usage(307, 253, reasoning=227), "tool_calls")


async def test_given_mistrals_content_as_a_list_when_read_then_thinking_and_text_come_apart() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "fine"},
    ]
    with ModelServer([Raw([stream(event({"content": parts}), finish="model_length")])]) as server:
        said = put_together(await collect(at(server, "mistral").stream(ask())))
    assert said == Said("fine", "hm", finish="length")


def test_given_ids_that_mistral_refuses_when_sent_then_calls_and_results_have_the_same_other_ones() -> None:
    calls = tuple(CallBlock(one, "add", "{}") for one in ("call_1", "call_2", "abcDEF123"))
    turns: list[Turn] = [GOAL, AssistantBlock(calls), *(ResultBlock(one.id, "add", (Text("3"),)) for one in calls)]
    sent = body_of("mistral", turns)["messages"]
    assert isinstance(sent, list)
    ids = [one["id"] for one in sent[1]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in sent[2:]]
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    assert (len(set(ids)), ids[2]) == (3, "abcDEF123")


@pytest.mark.parametrize(
    ("profile", "fields"),
    [
        ("openrouter", {"reasoning_details": [{"type": "x", "signature": "s"}]}),
        ("generic", {}),
        ("groq", {}),
    ],
)
def test_given_details_of_reasoning_when_sent_back_then_only_a_router_that_gave_them_gets_them(
    profile: str, fields: Mapping[str, object]
) -> None:
    source = "compatible" if profile == "generic" else profile
    details = '{"reasoning_details":[{"type":"x","signature":"s"}]}'
    turns: list[Turn] = [GOAL]
    if profile == "openrouter":
        turns.append(AssistantBlock((Thinking("hm"), Opaque(source, details), Text("b")), source, "m"))
    else:
        turns.append(AssistantBlock((Thinking("hm"), Text("b")), source, "m"))
    sent = body_of(profile, turns)["messages"]
    assert isinstance(sent, list)
    assert sent[1] == {"role": "assistant", "content": "b", **fields}


@pytest.mark.parametrize(
    ("profile", "name"),
    [("vllm", "reasoning"), ("llamacpp", "reasoning_content"), ("zai", "reasoning_content")],
)
def test_given_reasoning_of_a_local_model_when_its_tools_have_run_then_its_template_gets_it(
    profile: str, name: str
) -> None:
    call = CallBlock("c", "add", "{}")
    turns: list[Turn] = [
        GOAL,
        AssistantBlock((Thinking("hm"), call), profile, "m"),
        ResultBlock("c", "add", (Text("3"),)),
    ]
    sent = body_of(profile, turns)["messages"]
    assert isinstance(sent, list)
    assert sent[1][name] == "hm"


async def test_given_a_server_that_writes_tags_when_the_option_is_on_then_they_are_split() -> None:
    body = Raw([stream(event({"content": "<think>hm</think>fine"}))])
    with ModelServer([body, body]) as server:
        assert put_together(await collect(at(server).stream(ask(split_think=True)))) == Said(
            "fine", "hm", finish="stop"
        )
        assert put_together(await collect(at(server).stream(ask()))).text == "<think>hm</think>fine"


def test_given_openais_own_address_when_a_compatible_provider_is_made_then_its_table_is_known() -> None:
    provider = OpenAICompatibleProvider("https://api.openai.com/v1", "gpt-4.1", "sk-test-key-1")
    assert (provider.dialect, provider.info.window) == ("openai-chat", 1_047_576)
