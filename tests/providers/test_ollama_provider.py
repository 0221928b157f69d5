"""OllamaProvider: how its server is found, and what runs look like on the wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gemini_ollama_wires import HELLO, Sent, Service
from wires import Said, collect, put_together

from deepstrike import DoneEvent, ErrorEvent, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ToolCallEvent, tool
from deepstrike.errors import BadRequest, ConfigError, ContextOverflow, Overloaded, ProviderError
from deepstrike.providers.base import ModelRequest
from deepstrike.providers.ollama import OllamaProvider, full_address
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.wire.message import Usage
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from deepstrike.stream import StreamEvent

ONCE = RetryConfig(max_retries=0)
NDJSON = "application/x-ndjson"
FINAL = (
    b'{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",'
    b'"prompt_eval_count":7,"eval_count":2}'
)


def provider(service: Service, model: str = "llama3.2") -> OllamaProvider:
    return OllamaProvider(model, service.url, retry_config=ONCE, circuit_breaker=CircuitBreaker(ONCE))


def lines(*writes: bytes) -> Sent:
    return Sent(writes, kind=NDJSON)


def saying(text: str) -> bytes:
    return json.dumps({"message": {"role": "assistant", "content": text}, "done": False}).encode() + b"\n"


def refusing(status: int, text: str) -> Sent:
    return Sent([json.dumps({"error": text}).encode()], status, "application/json")


def request() -> ModelRequest:
    return ModelRequest("", "", (HELLO,), (), {})


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("localhost", "http://localhost:11434"),
        ("gpu.lan:8080", "http://gpu.lan:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("http://0.0.0.0:11434/", "http://127.0.0.1:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("11434", "http://127.0.0.1:11434"),
        ("[::]:11434", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("http://gpu.lan", "http://gpu.lan"),
        ("https://gpu.lan/ollama/", "https://gpu.lan/ollama"),
        (" 'gpu.lan:1' ", "http://gpu.lan:1"),
        ("http://localhost:11434/v1", "http://localhost:11434"),
        ("http://localhost:11434/api/", "http://localhost:11434"),
        ("ollama.com", "https://ollama.com"),
    ],
)
def test_given_a_host_in_any_of_its_forms_when_an_address_is_made_of_it_then_it_can_be_called(
    given: str, address: str
) -> None:
    assert full_address(given) == address


def test_given_the_environment_when_a_provider_is_made_then_it_says_where_the_server_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    assert repr(OllamaProvider("llama3.2")) == "OllamaProvider(model='llama3.2', base_url='http://localhost:11434')"
    monkeypatch.setenv("OLLAMA_HOST", "gpu.lan")
    assert repr(OllamaProvider("llama3.2")) == "OllamaProvider(model='llama3.2', base_url='http://gpu.lan:11434')"
    assert "http://localhost:1" in repr(OllamaProvider("llama3.2", base_url="http://localhost:1"))
    monkeypatch.setenv("OLLAMA_HOST", "gpu lan:x")
    with pytest.raises(ConfigError, match="OLLAMA_HOST"):
        OllamaProvider("llama3.2")


def test_given_the_cloud_when_there_is_no_key_then_its_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OLLAMA_API_KEY"):
        OllamaProvider("gpt-oss:120b", "https://ollama.com")
    assert OllamaProvider("gpt-oss:120b", "https://ollama.com", api_key="key-1234").info.price is None


def test_given_a_local_model_when_its_price_is_asked_for_then_it_costs_nothing() -> None:
    assert OllamaProvider("llama3.2", "localhost").info.price == Price(0, 0, 0, 0)


async def test_given_a_whole_answer_in_odd_pieces_when_streamed_then_path_body_and_answer_are_right() -> None:
    writes = (b'{"message":{"role":"assistant","content":"Hel"},"do', b'ne":false}\n' + saying("lo"), FINAL)
    async with Service(lines(*writes)) as service:
        model = provider(service)
        assert put_together(await collect(model.stream(request()))) == Said("Hello", usage=Usage(7, 2), finish="stop")
        await model.aclose()
    assert service.paths == ["/api/chat"]
    assert "authorization" not in service.headers[0]
    assert service.bodies == [
        {
            "model": "llama3.2",
            "stream": True,
            "messages": [{"role": "user", "content": "hi"}],
            "options": {"num_ctx": 32_000},
        }
    ]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refusing(404, 'model "llama3.2" not found, try pulling it first'), BadRequest, "`ollama pull llama3.2`"),
        (refusing(404, "model 'llama3.2' not found"), BadRequest, "`ollama pull llama3.2`"),
        (refusing(400, "library/llama3.2 does not support tools"), BadRequest, "run without tools"),
        (refusing(400, '"llama3.2" does not support thinking'), BadRequest, "leave out enable_thinking"),
        (refusing(400, "prompt too long; exceeded max context length by 7 tokens"), ContextOverflow, "shorten"),
        (refusing(503, "server busy, please try again"), Overloaded, "try later"),
        (lines(b'{"error":"model runner crashed"}\n'), Overloaded, "model runner crashed"),
        (lines(b'{"error":"model runner crashed"}'), Overloaded, "model runner crashed"),
        (Sent([b'{"error":"out of memory"}'], kind="application/json"), Overloaded, "out of memory"),
    ],
)
async def test_given_a_refusal_when_streamed_then_the_error_says_what_to_do(
    answer: Sent, kind: type[ProviderError], words: str
) -> None:
    async with Service(answer) as service:
        model = provider(service)
        with pytest.raises(kind, match=words.replace("`", ".")) as caught:
            await collect(model.stream(request()))
        assert type(caught.value) is kind
        await model.aclose()


def runner(service: Service, **options: Any) -> RuntimeRunner:
    @tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"sun in {city}"

    plane = LocalExecutionPlane().register(get_weather)
    return RuntimeRunner(RuntimeOptions(provider=provider(service), execution_plane=plane, **options))


async def events_of_run(service: Service, **options: Any) -> list[StreamEvent]:
    async with runner(service, **options) as running:
        return [event async for event in running.run_streaming("Weather?")]


async def test_given_two_calls_of_one_tool_without_ids_when_run_then_each_result_goes_back_in_call_order() -> None:
    calls = b'{"message":{"role":"assistant","content":"","tool_calls":[' + b",".join(
        b'{"function":{"name":"get_weather","arguments":{"city":"%b"}}}' % city for city in (b"Riga", b"Nice")
    )
    async with Service(lines(calls + b']},"done":false}\n', FINAL), lines(saying("Sun."), FINAL)) as service:
        events = await events_of_run(service)
    asked = [event for event in events if isinstance(event, ToolCallEvent)]
    assert [(event.name, event.arguments) for event in asked] == [
        ("get_weather", {"city": "Riga"}),
        ("get_weather", {"city": "Nice"}),
    ]
    assert len({event.id for event in asked}) == 2
    reply, *results = service.bodies[1]["messages"][-3:]
    assert [call["function"]["arguments"] for call in reply["tool_calls"]] == [{"city": "Riga"}, {"city": "Nice"}]
    assert [(result["tool_name"], result["content"], result["tool_call_id"]) for result in results] == [
        ("get_weather", "sun in Riga", asked[0].id),
        ("get_weather", "sun in Nice", asked[1].id),
    ]
    assert service.bodies[1]["messages"][: len(service.bodies[0]["messages"])] == service.bodies[0]["messages"]


async def test_given_an_error_line_in_mid_stream_when_run_then_the_run_is_not_completed() -> None:
    async with Service(lines(saying("Yes"), b'{"error":"model runner crashed"}\n')) as service:
        events = await events_of_run(service)
    assert any(isinstance(event, ErrorEvent) and "model runner crashed" in event.message for event in events)
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].status == "error"


@pytest.mark.parametrize("extensions", [{"options": {"num_ctx": 8192}}, {"num_ctx": 8192}])
async def test_given_an_explicit_window_when_run_then_it_is_sent_unchanged(extensions: dict[str, object]) -> None:
    async with Service(lines(saying("Sun."), FINAL)) as service:
        await events_of_run(service, max_tokens=16_384, extensions=extensions)
    assert service.bodies[0]["options"] == {"num_ctx": 8192}


@pytest.mark.parametrize(
    ("most", "extensions", "window"),
    [
        (None, {}, 32_000),
        (16_384, {}, 16_384),
        (None, {"num_ctx": 65_536}, 65_536),
        (16_384, {"num_ctx": 8_192}, 8_192),
        (16_384, {"options": {"num_ctx": 8_192}}, 8_192),
        (16_384, {"extra_body": {"options": {"num_ctx": 8_192}}}, 8_192),
        (16_384, {"num_ctx": 65_536}, 16_384),
    ],
)
def test_given_a_window_asked_of_the_server_when_a_run_is_limited_then_the_smaller_one_holds(
    most: int | None, extensions: dict[str, object], window: int
) -> None:
    options = RuntimeOptions(provider=OllamaProvider("qwen3:4b", "http://127.0.0.1:9"), max_tokens=most)
    assert options.limits(extensions).window == window
