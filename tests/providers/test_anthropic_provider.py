"""Claude over real sockets: headers, runs, replays, failures."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from anthropic_wire import answer, begin, event, judge, opened, text, thinking, tool_use
from anthropic_wire import closed as close_block
from wires import ask, collect, listen, put_together

from deepstrike import InMemorySessionLog, LocalExecutionPlane, RetryConfig, RuntimeOptions, RuntimeRunner, tool
from deepstrike.errors import BadRequest, ConfigError, ContextOverflow, Overloaded, QuotaExhausted, RateLimited
from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.base import Finish, ModelEvent
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import NoticeEvent, RetryEvent, TextDelta
from deepstrike.testing import ModelServer
from deepstrike.testing.server import Raw, Reply, refusal
from deepstrike.wire.message import Usage

KEY = "sk-ant-api03-0123456789"
BINDING = "thinking-binding-controls-2026-08-01"
QUICK = RetryConfig(max_retries=2, base_delay=0.001)


def served(*writes: bytes) -> Raw:
    """A stream in these writes."""
    return Raw(list(writes))


def claude(server: ModelServer, model: str = "claude-haiku-4-5", **headers: str) -> AnthropicProvider:
    return AnthropicProvider(
        KEY,
        model,
        base_url=server.base_url,
        retry_config=QUICK,
        circuit_breaker=CircuitBreaker(QUICK),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_given_no_key_when_made_then_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        AnthropicProvider()
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert repr(AnthropicProvider()) == (
        "AnthropicProvider(model='claude-sonnet-5-5', base_url='https://api.anthropic.com')"
    )


def test_given_a_key_when_anything_of_the_provider_is_printed_then_the_key_is_not_in_it() -> None:
    provider = AnthropicProvider(KEY)
    assert KEY not in repr(provider)
    assert KEY not in repr(vars(provider))


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
async def test_given_an_address_with_or_without_a_version_when_asked_then_the_path_is_the_same(end: str) -> None:
    async with ModelServer([served(answer(text(0, "hi")))]) as server:
        root = server.base_url.removesuffix("/v1")
        provider = AnthropicProvider(KEY, base_url=root + end)
        await collect(provider.stream(ask()))
        await provider.aclose()
    assert server.requests[0].path == "/v1/messages"


async def test_given_a_model_when_asked_then_key_version_and_betas_are_in_the_headers() -> None:
    async with ModelServer(otherwise=served(answer(text(0, "hi")))) as server:
        for model in ("claude-haiku-4-5", "claude-opus-5-5"):
            provider = claude(server, model)
            await collect(provider.stream(ask()))
            await provider.aclose()
    old, bound = (request.headers for request in server.requests)
    assert (old["x-api-key"], old["anthropic-version"], "anthropic-beta" in old) == (KEY, "2023-06-01", False)
    assert bound["anthropic-beta"] == BINDING
    assert "authorization" not in bound
    assert server.requests[1].body["thinking"] == {
        "type": "adaptive",
        "display": "summarized",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }


async def test_given_betas_of_the_user_when_asked_then_they_stand_beside_those_of_the_model() -> None:
    async with ModelServer(otherwise=served(answer(text(0, "hi")))) as server:
        provider = claude(server, "claude-opus-5-5", Anthropic_Beta="one")
        await collect(provider.stream(ask(betas=["two", "one"])))
        await collect(provider.stream(ask()))
        await collect(provider.stream(ask(betas=["two"])))
        await provider.aclose()
    sent = [request.headers["anthropic-beta"] for request in server.requests]
    assert sent == [f"one,{BINDING},two", f"one,{BINDING}", f"one,{BINDING},two"]
    assert server.requests[0].headers["x-api-key"] == KEY


@tool
async def stock(sku: str) -> str:
    """How many there are."""
    return f"{sku}: 5"


def runner_of(provider: AnthropicProvider, log: InMemorySessionLog) -> RuntimeRunner:
    plane = LocalExecutionPlane().register(stock)
    return RuntimeRunner(RuntimeOptions(provider=provider, session_log=log, execution_plane=plane))


ARTEFACTS = [
    {"type": "thinking", "thinking": "Let me check.", "signature": "c2lnLUFCQw=="},
    {"type": "redacted_thinking", "data": "ZW5jLVhZWg=="},
]
ASKS_STOCK = served(
    answer(
        thinking(0, "Let me check.", "c2lnLUFCQw=="),
        opened(1, type="redacted_thinking", data="ZW5jLVhZWg==") + close_block(1),
        tool_use(2, "toolu_9", "stock", '{"sku":"A1"}'),
        reason="tool_use",
    )
)


async def test_given_a_tool_loop_when_run_then_thinking_comes_back_as_it_was_also_after_the_log_is_read_again() -> None:
    log = InMemorySessionLog()
    async with ModelServer([ASKS_STOCK, served(answer(text(0, "Five."))), served(answer(text(0, "Bye.")))]) as server:
        provider = claude(server, "claude-opus-5-5")
        first = await runner_of(provider, log).run("How many A1?", session_id="s")
        again = await runner_of(claude(server, "claude-opus-5-5"), log).run("Thanks.", session_id="s")
        await provider.aclose()
    assert (first.text, again.text) == ("Five.", "Bye.")
    call = {"type": "tool_use", "id": "toolu_9", "name": "stock", "input": {"sku": "A1"}}
    contents = [[message["content"] for message in unmarked(request.raw)] for request in server.requests]
    assert contents[1][1] == [*ARTEFACTS, call]
    assert contents[1][2] == [
        {"type": "tool_result", "tool_use_id": "toolu_9", "content": [{"type": "text", "text": "A1: 5"}]}
    ]
    assert contents[2][:3] == contents[1]
    assert [judge(request.body) for request in server.requests] == [None] * 3
    heads = [request.raw[: request.raw.index(b',"messages":')] for request in server.requests]
    assert heads[0] == heads[1] == heads[2]


def unmarked(raw: bytes) -> list[dict[str, list[object]]]:
    """The messages without breakpoints."""
    body = json.loads(raw.replace(b',"cache_control":{"type":"ephemeral"}', b""))
    assert isinstance(body["messages"], list)
    return body["messages"]


async def test_given_many_tool_turns_when_run_then_no_request_has_more_than_four_breakpoints() -> None:
    asks = [
        served(answer(tool_use(0, f"toolu_{n}", "stock", f'{{"sku":"A{n}"}}'), reason="tool_use")) for n in range(10)
    ]
    async with ModelServer(asks, otherwise=served(answer(text(0, "done")))) as server:
        provider = claude(server)
        plane = LocalExecutionPlane().register(stock)
        options = RuntimeOptions(provider=provider, execution_plane=plane, system_prompt="Be brief.")
        await RuntimeRunner(options).run("go")
        await provider.aclose()
    assert len(server.requests) == 11
    assert [request.raw.count(b'"cache_control"') for request in server.requests] == [2, 3, *[4] * 9]


async def test_given_thinking_and_a_cut_call_when_the_limit_is_reached_then_the_call_is_not_run() -> None:
    ran: list[str] = []

    @tool
    async def save(body: str) -> str:
        """Save it."""
        ran.append(body)
        return "saved"

    cut = answer(text(0, "Well"), tool_use(1, "t", "save", '{"body": "Lor"}'), reason="max_tokens")
    async with ModelServer([served(cut)]) as server:
        provider = claude(server)
        options = RuntimeOptions(provider=provider, execution_plane=LocalExecutionPlane().register(save))
        events = [one async for one in RuntimeRunner(options).run_streaming("go")]
        await provider.aclose()
    assert ran == []
    assert [getattr(one, "code", None) for one in events if one.type == "error"] == ["output_limit"]


OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})


async def test_given_an_overload_before_anything_was_shown_when_asked_then_the_call_is_tried_again() -> None:
    async with ModelServer([served(begin() + OVERLOADED), served(answer(text(0, "ok")))]) as server:
        provider = claude(server)
        events = await collect(provider.stream(ask()))
        await provider.aclose()
    assert [type(one) for one in events] == [RetryEvent, TextDelta, Usage, Finish]
    assert put_together(events).text == "ok"


async def test_given_thinking_and_calls_before_an_overload_when_asked_then_the_call_is_tried_again() -> None:
    broken = begin() + thinking(0, "hm", "s") + tool_use(1, "t", "f", "{}") + OVERLOADED
    async with ModelServer([served(broken), served(answer(text(0, "ok")))]) as server:
        provider = claude(server)
        said = put_together(await collect(provider.stream(ask())))
        await provider.aclose()
    assert (said.text, said.calls, server.accepted) == ("ok", (), 2)


async def test_given_an_overload_behind_text_when_asked_then_the_text_is_shown_once_and_the_call_fails() -> None:
    async with ModelServer([served(begin() + text(0, "Half an") + OVERLOADED)]) as server:
        provider = claude(server)
        seen: list[ModelEvent] = []
        with pytest.raises(Overloaded, match="overloaded_error"):
            await listen(provider.stream(ask()), seen)
        await provider.aclose()
    assert (seen, server.accepted) == ([TextDelta("Half an")], 1)


def refused(status: int, kind: str, message: str, **headers: str) -> Raw:
    """An error answer in this vendor's form."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw([body.encode()], status, {"content-type": "application/json", "request-id": "req_1", **named})


@pytest.mark.parametrize(
    ("reply", "kind", "tries"),
    [
        (
            refused(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            ContextOverflow,
            1,
        ),
        (refused(400, "invalid_request_error", "Your credit balance is too low"), QuotaExhausted, 1),
        (refused(400, "invalid_request_error", "max_tokens: field required"), BadRequest, 1),
        (refused(402, "billing_error", "pay first"), QuotaExhausted, 1),
        (refused(404, "not_found_error", "model: x"), BadRequest, 1),
        (refused(413, "request_too_large", "too large"), BadRequest, 1),
        (refused(429, "rate_limit_error", "slow down", retry_after="0"), RateLimited, 3),
        (refused(500, "api_error", "oops"), Overloaded, 3),
        (refused(504, "timeout_error", "late"), Overloaded, 3),
        (refused(529, "overloaded_error", "Overloaded"), Overloaded, 3),
        (refused(529, "overloaded_error", "Overloaded", x_should_retry="false"), Overloaded, 1),
    ],
    ids=str,
)
async def test_given_a_refusal_when_asked_then_it_is_this_error_and_tried_so_often(
    reply: Raw, kind: type[Exception], tries: int
) -> None:
    async with ModelServer(otherwise=reply) as server:
        provider = claude(server)
        with pytest.raises(kind) as caught:
            await collect(provider.stream(ask()))
        await provider.aclose()
    assert type(caught.value) is kind
    assert server.accepted == tries
    assert vars(caught.value)["request_id"] == "req_1"


async def test_given_a_server_that_echoes_the_key_when_it_fails_then_the_error_hides_it() -> None:
    async with ModelServer(otherwise=refusal(401, f"bad key {KEY}")) as server:
        provider = claude(server)
        with pytest.raises(Exception, match=r"bad key \*\*\*"):
            await collect(provider.stream(ask()))
        await provider.aclose()


async def test_given_a_service_that_does_not_sign_when_run_then_its_thinking_comes_back_unsigned() -> None:
    unsigned = opened(0, type="thinking", thinking="hm") + close_block(0)
    asks = served(answer(unsigned, tool_use(1, "c1", "stock", '{"sku":"A"}'), reason="tool_use"))
    async with ModelServer([asks, served(answer(text(0, "done")))]) as server:
        provider = claude(server, "house-model")
        await runner_of(provider, InMemorySessionLog()).run("go")
        await provider.aclose()
    assert unmarked(server.requests[1].raw)[1]["content"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "c1", "name": "stock", "input": {"sku": "A"}},
    ]


SEARCH = opened(0, type="server_tool_use", id="srv_1", name="web_search", input={}) + close_block(0)


def pauses() -> Iterator[Reply]:
    yield served(answer(text(0, "Let me look."), SEARCH.replace(b'"index":0', b'"index":1'), reason="pause_turn"))
    yield served(answer(text(0, "Found it.")))


async def test_given_a_pause_when_asked_then_the_answer_goes_on_in_the_same_stream_and_counts_all_of_it() -> None:
    async with ModelServer(pauses()) as server:
        provider = claude(server)
        events = await collect(provider.stream(ask("hi")))
        await provider.aclose()
    said = put_together(events)
    assert (said.text, said.finish) == ("Let me look.Found it.", "stop")
    assert [one for one in events if isinstance(one, Usage)][-1] == Usage(20, 10)
    paused = unmarked(server.requests[1].raw)[-1]
    assert paused == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
        ],
    }


async def test_given_a_service_that_pauses_for_ever_when_asked_then_the_answer_ends() -> None:
    async with ModelServer(otherwise=served(answer(text(0, "a"), reason="pause_turn"))) as server:
        provider = claude(server)
        said = put_together(await collect(provider.stream(ask())))
        await provider.aclose()
    assert (said.text, said.finish, server.accepted) == ("a" * 16, "other", 16)


async def test_given_a_refusal_of_the_model_when_run_then_it_is_told_and_the_run_fails() -> None:
    body = answer(reason="refusal")
    async with ModelServer([served(body)]) as server:
        provider = claude(server)
        events = [one async for one in RuntimeRunner(RuntimeOptions(provider=provider)).run_streaming("go")]
        await provider.aclose()
    assert [one.code for one in events if isinstance(one, NoticeEvent)] == ["refused"]
    assert [getattr(one, "code", None) for one in events if one.type == "error"] == ["content_filter"]
    assert server.accepted == 1
