"""Whole runs against the chat family: reasoning survives tool turns and a reload, fallbacks and breakers are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from wires import call_event, event, stream

from deepstrike import LocalExecutionPlane, NoticeEvent, RuntimeOptions, RuntimeRunner, TextDelta, ThinkingDelta, tool
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.fallback import FallbackProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.testing.server import ModelServer, Raw, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.service import ServiceProvider
    from deepstrike.stream import StreamEvent
    from deepstrike.testing.server import Received

KEY = "sk-test-key-1"
NEVER = RetryConfig(max_retries=0)


@tool
def stock(sku: str) -> str:
    """How many there are."""
    return "3"


def runner(provider: ServiceProvider | FallbackProvider, log: InMemorySessionLog) -> RuntimeRunner:
    plane = LocalExecutionPlane().register(stock)
    return RuntimeRunner(RuntimeOptions(provider=provider, session_log=log, execution_plane=plane))


def calling(**said: object) -> Raw:
    """An answer that says this, then calls the tool."""
    call = {"index": 0, "id": "c1", "function": {"name": "stock", "arguments": '{"sku":"A1"}'}}
    return Raw([stream(event({"role": "assistant", **said}), call_event(call), finish="tool_calls")])


def tool_turn(received: Received) -> Mapping[str, object]:
    """What the request's message with calls says besides them."""
    messages = received.body["messages"]
    assert isinstance(messages, list)
    [found] = [one for one in messages if one.get("tool_calls")]
    return {name: value for name, value in found.items() if name not in ("role", "content", "tool_calls")}


DETAILS = [{"type": "reasoning.text", "text": "check stock"}]
Kind = type[DeepSeekProvider] | type[KimiProvider] | type[MiniMaxProvider]


@pytest.mark.parametrize("expose", [True, False])
@pytest.mark.parametrize(
    ("kind", "said", "back"),
    [
        (
            DeepSeekProvider,
            {"reasoning_content": "Need the stock."},
            {"reasoning_content": "Need the stock."},
        ),
        (DeepSeekProvider, {}, {"reasoning_content": ""}),
        (KimiProvider, {"reasoning_content": "Need it."}, {"reasoning_content": "Need it."}),
        (KimiProvider, {"content": "Let me see."}, {"reasoning_content": ""}),
        (MiniMaxProvider, {"reasoning_details": DETAILS}, {"reasoning_details": DETAILS}),
        (
            MiniMaxProvider,
            {"reasoning_content": "check stock", "reasoning_details": DETAILS},
            {"reasoning_details": DETAILS},
        ),
    ],
)
async def test_given_a_reply_with_reasoning_when_its_tool_has_run_and_the_session_is_reloaded_then_it_goes_back(
    kind: Kind, said: Mapping[str, object], back: Mapping[str, object], expose: bool
) -> None:
    log = InMemorySessionLog()
    with ModelServer([calling(**said)]) as server:
        seen: list[StreamEvent] = []
        for goal in ("How many?", "And now?"):
            provider = kind(KEY, base_url=server.base_url)
            run = runner(provider, log).run_streaming(goal, session_id="s", extensions={"expose_reasoning": expose})
            seen += [one async for one in run]
    assert [tool_turn(one) for one in server.requests[1:]] == [back, back]
    thinking = "".join(one.delta for one in seen if isinstance(one, ThinkingDelta))
    assert bool(thinking) is (expose and bool(said.keys() & {"reasoning_content", "reasoning_details"}))
    assert server.refused == []


async def test_given_a_session_of_one_vendor_when_another_goes_on_then_its_reasoning_stays_out_and_it_is_told() -> None:
    log = InMemorySessionLog()
    with ModelServer([calling(reasoning_details=DETAILS)]) as server:
        first = runner(MiniMaxProvider(KEY, base_url=server.base_url), log)
        assert (await first.run_streaming("How many?", session_id="s")).status == "completed"
        second = runner(KimiProvider(KEY, base_url=server.base_url), log)
        seen = [one async for one in second.run_streaming("And now?", session_id="s")]
    assert [one.code for one in seen if isinstance(one, NoticeEvent)] == ["artefact_dropped"]
    assert tool_turn(server.requests[-1]) == {"reasoning_content": ""}


async def test_given_a_failing_service_when_it_has_a_fallback_then_the_run_completes_and_every_change_is_seen() -> None:
    breaking = RetryConfig(max_retries=0, circuit_open_after=2)
    with ModelServer(otherwise=refusal(503)) as down, ModelServer([calling(reasoning_content="hm"), "3"]) as up:
        provider = FallbackProvider(
            DeepSeekProvider(KEY, base_url=down.base_url, retry_config=breaking),
            KimiProvider(KEY, base_url=up.base_url, retry_config=NEVER),
        )
        run = runner(provider, InMemorySessionLog()).run_streaming("How many?", session_id="s")
        seen = [one async for one in run]
    codes = [one.code for one in seen if isinstance(one, NoticeEvent)]
    assert [one for one in codes if one != "artefact_dropped"] == ["fallback", "circuit_open", "fallback"]
    assert [one.delta for one in seen if isinstance(one, TextDelta)] == ["3"]
    assert tool_turn(up.requests[-1]) == {"reasoning_content": "hm"}, "the reply was recorded as the fallback's own"
