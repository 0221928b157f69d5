"""Several providers as one."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from wires import ask, collect, listen

from deepstrike import RuntimeOptions, RuntimeRunner
from deepstrike.errors import (
    BadRequest,
    CircuitOpen,
    ConfigError,
    ContentFiltered,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    Truncated,
    Unauthorized,
)
from deepstrike.providers.base import Finish, Memo, ModelEvent, ModelInfo, ModelRequest, Source, ToolCall
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.fallback import FallbackProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.stream import RetryEvent, TextDelta, ThinkingDelta, UsageEvent
from deepstrike.testing.server import ModelServer
from deepstrike.wire.message import AssistantBlock, Notice, Text, Usage, UserBlock
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from deepstrike.wire.message import Turn

KEY = "sk-test-key-1"
PRICE = Price(1, 2, 3, 4)
SECOND = ModelInfo("second", 9_000, 500, PRICE)


def first(*replies: str | Sequence[ModelEvent] | BaseException) -> ScriptedProvider:
    return ScriptedProvider(replies, info=ModelInfo("first", 10_000))


def second(*replies: str | Sequence[ModelEvent] | BaseException) -> ScriptedProvider:
    return ScriptedProvider(replies, info=SECOND)


def breaking(*events: ModelEvent) -> Breaking:
    return Breaking(events)


class Breaking:
    """Says something, then breaks off."""

    def __init__(self, events: Sequence[ModelEvent]) -> None:
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self._events:
            yield event
        raise Truncated("cut")


ANSWER = [Source("scripted", "second", PRICE), TextDelta("fine"), Usage(0, 0), Finish("stop")]


@pytest.mark.parametrize(
    "fault",
    [
        Overloaded("down"),
        QuotaExhausted("empty"),
        Unauthorized("no"),
        CircuitOpen("open"),
        Truncated("cut"),
        ProviderError("odd"),
    ],
    ids=lambda fault: fault.code,
)
async def test_given_a_provider_that_fails_when_nothing_was_shown_then_the_next_one_answers_and_it_is_told(
    fault: ProviderError,
) -> None:
    events = await collect(FallbackProvider(first(fault), second("fine")).stream(ask()))
    notice = Notice("fallback", f"first failed ({fault.code}: {fault.message}); asking second")
    assert events == [notice, *ANSWER]


@pytest.mark.parametrize("kind", [BadRequest, ContentFiltered, ContextOverflow])
async def test_given_a_failure_of_the_request_itself_when_it_comes_then_nobody_else_is_asked(
    kind: type[ProviderError],
) -> None:
    other = second("fine")
    with pytest.raises(kind):
        await collect(FallbackProvider(first(kind("no")), other).stream(ask()))
    assert other.requests == []


async def test_given_a_provider_that_answers_when_asked_then_its_events_are_all() -> None:
    events = await collect(FallbackProvider(first("fine"), second()).stream(ask()))
    assert events == [TextDelta("fine"), Usage(0, 0), Finish("stop")]


@pytest.mark.parametrize("shown", [TextDelta("The cap"), ToolCall("c", "f", "{}")])
async def test_given_something_shown_when_the_provider_fails_then_nothing_is_repeated(shown: ModelEvent) -> None:
    other = second("fine")
    seen: list[ModelEvent] = []
    with pytest.raises(Truncated):
        await listen(FallbackProvider(breaking(shown), other).stream(ask()), seen)
    assert (seen, other.requests) == ([shown], [])


async def test_given_thinking_shown_when_the_provider_fails_then_the_caller_is_told_to_forget_it() -> None:
    events = await collect(FallbackProvider(breaking(ThinkingDelta("hm")), second("fine")).stream(ask()))
    told = "Breaking failed (truncated: cut); asking second"
    assert events == [ThinkingDelta("hm"), RetryEvent(1, 0, told), Notice("fallback", told), *ANSWER]


async def test_given_all_fail_when_asked_then_the_last_failure_is_raised() -> None:
    with pytest.raises(QuotaExhausted, match="empty"):
        await collect(FallbackProvider(first(Overloaded("down")), second(QuotaExhausted("empty"))).stream(ask()))


async def test_given_a_failure_once_when_asked_again_then_the_first_is_asked_again() -> None:
    provider = FallbackProvider(first(Overloaded("down"), "back"), second("fine"))
    await collect(provider.stream(ask()))
    assert TextDelta("back") in await collect(provider.stream(ask()))


def test_given_models_of_several_sizes_when_asked_for_its_own_then_every_prompt_fits_all() -> None:
    provider = FallbackProvider(first(), second())
    assert (provider.info, provider.dialect) == (ModelInfo("first", 9_000, 500), "scripted")
    assert repr(FallbackProvider(DeepSeekProvider(KEY))).startswith("FallbackProvider(DeepSeekProvider(")
    assert FallbackProvider(breaking()).info == ModelInfo("")


def test_given_no_providers_when_made_then_it_is_an_error() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        FallbackProvider()
    with pytest.raises(ConfigError, match="method stream"):
        FallbackProvider(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="which are built"):
        FallbackProvider(OpenAIProvider(KEY), DeepSeekProvider)  # type: ignore[arg-type]


def test_given_extensions_when_admitted_then_one_that_any_provider_knows_passes() -> None:
    provider = FallbackProvider(OpenAIProvider(KEY, "gpt-4.1"), DeepSeekProvider(KEY))
    given = {"seed": 1, "verbosity": "low"}
    with pytest.warns(UserWarning, match="'verbosity' was dropped: the service of 'deepseek-flash'"):
        assert FallbackProvider(DeepSeekProvider(KEY), OpenAIProvider(KEY, "gpt-4.1")).admit(given) == given
    with pytest.raises(ConfigError, match="did you mean 'temperature'"):
        provider.admit({"temprature": 0.1})


def overloaded(server: ModelServer) -> DeepSeekProvider:
    never = RetryConfig(max_retries=0, circuit_open_after=0)
    return DeepSeekProvider(KEY, base_url=server.base_url, retry_config=never)


async def test_given_two_services_when_one_fails_over_turns_then_each_encodes_for_itself_and_only_what_is_new() -> None:
    from deepstrike.testing.server import refusal

    with ModelServer(otherwise=refusal(503)) as down, ModelServer() as up:
        provider = FallbackProvider(overloaded(down), KimiProvider(KEY, base_url=up.base_url))
        memo = Memo()
        turns: list[Turn] = []
        for n in range(3):
            turns.append(UserBlock((Text(f"q{n}"),)))
            request = ModelRequest("s", "", tuple(turns), (), {"enable_thinking": False}, memo=memo)
            await collect(provider.stream(request))
            turns.append(AssistantBlock((Text(f"a{n}"),), "kimi", "kimi-k2.6"))
        inner = provider._memos.get(memo)[0]
    for server, model in ((down, "deepseek-flash"), (up, "kimi-k2.6")):
        bodies = [one.body for one in server.requests]
        assert [one["model"] for one in bodies] == [model] * 3
        histories = [json.dumps(one["messages"])[:-1] for one in bodies]
        assert histories[2].startswith(histories[1])
        assert histories[1].startswith(histories[0])
        assert bodies[0]["thinking"] == {"type": "disabled"}
    assert (memo.turns, inner.turns) == (5, 5)
    assert memo.body != b""
    await provider.aclose()


async def test_given_many_conversations_when_they_have_fallen_back_then_only_so_many_memos_are_kept() -> None:
    provider = FallbackProvider(*(ScriptedProvider([Overloaded("down")], repeat_last=True), second(*["fine"] * 200)))
    for _ in range(200):
        await collect(provider.stream(ask()))
    gc.collect()
    assert len(provider._memos._kept) == 64


async def test_given_a_fallback_of_unknown_price_when_each_answers_then_only_the_priced_one_is_costed() -> None:
    priced = ScriptedProvider(["one", Overloaded("down")], info=replace(SECOND, id="priced"))
    unpriced = ScriptedProvider(["two"], info=ModelInfo("unpriced", 9_000))
    provider = FallbackProvider(priced, unpriced)
    assert provider.info == replace(SECOND, id="priced", price=None)
    runner = RuntimeRunner(RuntimeOptions(provider=provider))
    costs = [one.cost_usd for _ in range(2) async for one in runner.run_streaming("go") if isinstance(one, UsageEvent)]
    assert costs == [0.0, None]
    with pytest.raises(ConfigError, match="max_cost_usd needs a price"):
        RuntimeOptions(provider=provider, max_cost_usd=1.0)


async def test_given_a_fallback_of_another_price_when_it_answers_then_the_cost_is_its_own() -> None:
    usage = Usage(1_000_000, 0)
    cheap = ScriptedProvider([[TextDelta("one"), usage], Overloaded("down")], info=ModelInfo("cheap", price=PRICE))
    dear = ScriptedProvider([[TextDelta("two"), usage]], info=ModelInfo("dear", price=Price(5, 6, 7, 8)))
    runner = RuntimeRunner(RuntimeOptions(provider=FallbackProvider(cheap, dear), max_cost_usd=1.0))
    costs = [one.cost_usd for _ in range(2) async for one in runner.run_streaming("go") if isinstance(one, UsageEvent)]
    assert costs == [1e-6, 5e-6]


def test_given_a_window_asked_of_one_provider_then_it_is_the_smallest_of_all() -> None:
    local = OllamaProvider("qwen3:4b", "http://127.0.0.1:9")
    provider = FallbackProvider(local, ScriptedProvider([], info=ModelInfo("other", 9_000)))
    assert provider.window({}) is None
    assert (provider.window({"num_ctx": 4_096}), provider.window({"num_ctx": 64_000})) == (4_096, 9_000)
