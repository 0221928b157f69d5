"""GeminiProvider: its address and key, its refusals, and runs with signatures on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from gemini_ollama_wires import HELLO, Sent, Service
from wires import Said, collect, put_together

from deepstrike import InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.errors import (
    BadRequest,
    ConfigError,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unauthorized,
)
from deepstrike.providers.base import ModelRequest
from deepstrike.providers.gemini import GeminiProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import RetryEvent
from deepstrike.wire.message import AssistantBlock, CallBlock, Notice, Opaque, ResultBlock, Turn, Usage

UNCHECKED = "skip_thought_signature_validator"
KEY = "AIza-test-0123456789"
ONCE = RetryConfig(max_retries=0)


def provider(service: Service, model: str = "gemini-3.8-flash", retry: RetryConfig = ONCE) -> GeminiProvider:
    return GeminiProvider(KEY, model, base_url=service.url, retry_config=retry, circuit_breaker=CircuitBreaker(retry))


def sse(*parts: Mapping[str, object], finish: str | None = "STOP") -> bytes:
    candidate = {"content": {"role": "model", "parts": parts}, **({"finishReason": finish} if finish else {})}
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    return b"data: " + json.dumps({"candidates": [candidate], "usageMetadata": counts}).encode() + b"\r\n\r\n"


def refusing(code: int, message: str, status: str, *details: object, kind: str = "text/event-stream") -> Sent:
    body: object = {"error": {"code": code, "message": message, "status": status, "details": details}}
    return Sent([json.dumps(body, indent=2).encode()], code, kind)


def listed(sent: Sent) -> Sent:
    """The same answer in a list of one, as it comes where no event stream is spoken."""
    return Sent([b"[" + sent.writes[0] + b"]"], sent.status, "application/json")


def request() -> ModelRequest:
    return ModelRequest("", "", (HELLO,), (), {})


BAD_KEY = refusing(400, "API key not valid.", "INVALID_ARGUMENT", {"@type": "e", "reason": "API_KEY_INVALID"})
A_DAY = refusing(
    429,
    "You exceeded your current quota",
    "RESOURCE_EXHAUSTED",
    {"@type": "q", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
    {"@type": "r", "retryDelay": "37s"},
)
A_MINUTE = refusing(
    429,
    "You exceeded your current quota",
    "RESOURCE_EXHAUSTED",
    {"@type": "q", "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},
    {"@type": "r", "retryDelay": "0.001s"},
)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (BAD_KEY, Unauthorized),
        (listed(BAD_KEY), Unauthorized),
        (A_DAY, QuotaExhausted),
        (listed(A_DAY), QuotaExhausted),
        (A_MINUTE, RateLimited),
        (refusing(403, "no", "PERMISSION_DENIED"), Unauthorized),
        (refusing(404, "models/x is not found", "NOT_FOUND"), BadRequest),
        (
            refusing(
                400,
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                "INVALID_ARGUMENT",
            ),
            ContextOverflow,
        ),
        (refusing(500, "An internal error has occurred", "INTERNAL"), Overloaded),
        (refusing(503, "The model is overloaded", "UNAVAILABLE"), Overloaded),
        (refusing(504, "Deadline expired", "DEADLINE_EXCEEDED"), Overloaded),
        (Sent([b'data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}\r\n\r\n']), Overloaded),
        (Sent([b'{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}']), RateLimited),
    ],
)
async def test_given_a_refusal_in_any_form_when_streamed_then_it_is_this_error(
    answer: Sent, kind: type[ProviderError]
) -> None:
    async with Service(answer) as service:
        model = provider(service)
        with pytest.raises(ProviderError) as caught:
            await collect(model.stream(request()))
        await model.aclose()
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("words", ["Corrupted thought signature.", "Thought signature is not valid."])
async def test_given_signatures_that_the_service_refuses_when_asked_then_they_are_left_out_from_then_on(
    words: str,
) -> None:
    call = CallBlock("c1", "f", "{}")
    mark = Opaque("gemini", '{"on":"call","chars":0,"signature":"old"}')
    turns: list[Turn] = [HELLO, AssistantBlock((mark, call), "gemini", "gemini-3.8-flash"), ResultBlock("c1", "f", ())]
    asking = ModelRequest("", "", turns, (), {})
    fresh = mark.text.replace("old", "new")
    async with Service(refusing(400, words, "INVALID_ARGUMENT"), *[Sent([sse({"text": "hi"})])] * 2) as service:
        model = provider(service)
        first = await collect(model.stream(asking))
        turns += [AssistantBlock((Opaque("gemini", fresh), call), "gemini", "gemini-3.8-flash"), turns[-1]]
        second = await collect(model.stream(asking))
        await model.aclose()
    assert [event.code for event in first if isinstance(event, Notice)] == ["artefact_dropped"]
    assert put_together(first) == put_together(second) == Said("hi", usage=Usage(5, 2), finish="stop")
    signatures = [
        [
            part["thoughtSignature"]
            for content in body["contents"]
            for part in content["parts"]
            if "functionCall" in part
        ]
        for body in service.bodies
    ]
    assert signatures == [["old"], [UNCHECKED], [UNCHECKED, "new"]]


async def test_given_a_refusal_that_stays_when_signatures_are_left_out_then_it_is_told() -> None:
    refusal = refusing(400, "Function call is missing a thought_signature", "INVALID_ARGUMENT")
    async with Service(refusal, refusal) as service:
        model = provider(service)
        with pytest.raises(BadRequest, match="missing a thought_signature"):
            await collect(model.stream(request()))
        await model.aclose()
    assert len(service.bodies) == 2


async def test_given_a_wait_named_in_the_body_when_refused_then_the_next_try_comes_after_it() -> None:
    async with Service(A_MINUTE, Sent([sse({"text": "hi"})])) as service:
        model = provider(service, retry=RetryConfig(max_retries=1, base_delay=60.0))
        first, *rest = await collect(model.stream(request()))
        await model.aclose()
    assert isinstance(first, RetryEvent)
    assert first.delay_ms == 1
    assert put_together(rest) == Said("hi", usage=Usage(5, 2), finish="stop")


async def test_given_a_key_when_streamed_then_it_goes_in_its_own_header_and_the_model_in_the_path() -> None:
    async with Service(Sent([sse({"text": "hi"})])) as service:
        model = provider(service, "models/gemini-3.8-flash")
        await collect(model.stream(request()))
        await model.aclose()
        assert (KEY in repr(model), model.info.window) == (False, 1_048_576)
    assert service.paths == ["/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"]
    assert f"x-goog-api-key: {KEY.lower()}" in service.headers[0]
    assert "authorization" not in service.headers[0]


def test_given_the_environment_when_a_provider_is_made_then_both_key_variables_count_and_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="GEMINI_API_KEY"):
        GeminiProvider()
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    expected = "GeminiProvider(model='gemini-3.8-flash', base_url='https://generativelanguage.googleapis.com/v1beta')"
    assert repr(GeminiProvider()) == expected
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://gate.test")
    assert "'https://gate.test/v1beta'" in repr(GeminiProvider())
    assert "'https://gate.test/v1'" in repr(GeminiProvider(base_url="https://gate.test/v1"))


def test_given_extensions_when_admitted_then_unknown_ones_are_refused_and_those_the_model_refuses_dropped() -> None:
    model = GeminiProvider(KEY, "gemini-4-argon")
    with pytest.raises(ConfigError, match="did you mean 'thinking_budget'"):
        model.admit({"thinking_budgets": 1})
    with pytest.warns(UserWarning, match="'thinking_budget' was dropped: the model 'gemini-4-argon' refuses it"):
        assert model.admit({"thinking_budget": 1, "top_k": 3}) == {"top_k": 3}


async def test_given_parallel_calls_with_a_signature_when_run_then_it_returns_on_its_part_also_from_the_log() -> None:
    @tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"sun in {city}"

    calls = [{"functionCall": {"name": "get_weather", "args": {"city": city}}} for city in ("Riga", "Nice")]
    signed = {**calls[0], "thoughtSignature": "c2ln+/=="}
    first = sse({"text": "Thinking.", "thought": True}, signed, calls[1])
    answers = (Sent([first]), Sent([sse({"text": "Sun."}, {"text": "", "thoughtSignature": "bGFzdA=="})]))
    log, plane = InMemorySessionLog(), LocalExecutionPlane().register(get_weather)

    def runner(service: Service) -> RuntimeRunner:
        return RuntimeRunner(RuntimeOptions(provider=provider(service), execution_plane=plane, session_log=log))

    async with Service(*answers) as service, runner(service) as running:
        done = await running.run("Weather?", session_id="s")
    assert (done.text, done.status) == ("Sun.", "completed")
    model, results = service.bodies[1]["contents"][-2:]
    assert [part.get("thoughtSignature") for part in model["parts"]] == [None, "c2ln+/==", None]
    assert [part["functionCall"]["args"] for part in model["parts"][1:]] == [{"city": "Riga"}, {"city": "Nice"}]
    ids = [part["functionCall"]["id"] for part in model["parts"][1:]]
    assert [part["functionResponse"]["id"] for part in results["parts"]] == ids
    assert len(set(ids)) == 2
    async with Service(Sent([sse({"text": "Yes."})])) as later, runner(later) as running:
        await running.run("Sure?", session_id="s")
    contents = later.bodies[0]["contents"]
    assert contents[: len(service.bodies[1]["contents"])] == service.bodies[1]["contents"]
    assert contents[-2] == {
        "role": "model",
        "parts": [{"text": "Sun."}, {"text": "", "thoughtSignature": "bGFzdA=="}],
    }
