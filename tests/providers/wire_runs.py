"""Whole runs against services of several dialects: what was said, asked and done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import (
    DoneEvent,
    ErrorEvent,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from deepstrike.testing.renderers import CHAT, MESSAGES, OLLAMA, Renderer, Spoken
from deepstrike.testing.server import ModelServer, Raw, Reply
from deepstrike.tools.definition import Tool

KEY = "sk-test-THISISNOTREAL-0123456789abcdef"
ONCE = RetryConfig(max_retries=0)
SOON = RetryConfig(max_retries=2, base_delay=0.1)
RENDERERS: dict[str, Renderer] = {"openai": CHAT, "anthropic": MESSAGES, "ollama": OLLAMA}


@dataclass
class Outcome:
    """What a run said, what it asked for, and which tools ran."""

    events: list[StreamEvent]
    requests: list[Mapping[str, Any]]
    ran: list[tuple[str, Mapping[str, object]]]
    refused: list[str] = field(default_factory=list)

    def of(self, kind: type[StreamEvent]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def text(self) -> str:
        return "".join(event.delta for event in self.of(TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(event.delta for event in self.of(ThinkingDelta))

    @property
    def calls(self) -> list[tuple[str, str, Mapping[str, object]]]:
        return [(event.id, event.name, event.arguments) for event in self.of(ToolCallEvent)]

    @property
    def results(self) -> list[ToolResultEvent]:
        """In the order of the calls: tools that run at once may end in any."""
        order = [call_id for call_id, *_ in self.calls]
        return sorted(self.of(ToolResultEvent), key=lambda event: order.index(event.call_id))

    @property
    def usage(self) -> tuple[int, int] | None:
        """Input and output of the first call."""
        counted = self.of(UsageEvent)
        return (counted[0].input_tokens, counted[0].output_tokens) if counted else None

    @property
    def error(self) -> str:
        return " ".join(event.message for event in self.of(ErrorEvent))

    @property
    def done(self) -> DoneEvent:
        last = self.events[-1]
        assert isinstance(last, DoneEvent)
        assert len(self.of(DoneEvent)) == 1
        return last

    def messages(self, request: int, role: str) -> list[Mapping[str, Any]]:
        """The messages of one role in the request of this number, from 0."""
        return [message for message in self.requests[request]["messages"] if message["role"] == role]


Make = Callable[[str, RetryConfig], ServiceProvider]
"""Makes the provider for an address."""


def _options(retry: RetryConfig) -> Any:
    return {"retry_config": retry, "circuit_breaker": CircuitBreaker(retry)}


def chat(url: str, retry: RetryConfig) -> ServiceProvider:
    return OpenAIProvider(KEY, "gpt-4.1-mini", api="chat", base_url=url, **_options(retry))


def claude(url: str, retry: RetryConfig) -> ServiceProvider:
    return AnthropicProvider(KEY, "claude-sonnet-4-6", base_url=url, **_options(retry))


def ollama(url: str, retry: RetryConfig) -> ServiceProvider:
    return OllamaProvider("qwen3:4b", url, **_options(retry))


def minimax(url: str, retry: RetryConfig) -> ServiceProvider:
    return MiniMaxProvider(KEY, base_url=url, **_options(retry))


_MAKERS: dict[str, Make] = {"openai": chat, "anthropic": claude, "ollama": ollama}


def tools(ran: list[tuple[str, Mapping[str, object]]]) -> list[Tool[..., Any]]:
    """Tools that note how they were called."""

    def noted(name: str, **arguments: object) -> str:
        ran.append((name, arguments))
        return f"result of {name} {len(ran)}"

    @tool
    def get_weather(city: str) -> str:
        return noted("get_weather", city=city)

    @tool
    def get_time(tz: str) -> str:
        return noted("get_time", tz=tz)

    @tool
    def now() -> str:
        return noted("now")

    @tool
    def f(x: int | None = None) -> str:
        return noted("f", **({} if x is None else {"x": x}))

    @tool
    def stock(sku: str) -> str:
        return noted("stock", sku=sku)

    @tool
    def add(x: int, y: int) -> str:
        return noted("add", x=x, y=y)

    @tool
    def write_file(path: str, text: str = "") -> str:
        return noted("write_file", path=path, text=text)

    @tool
    def save(title: str, body: str) -> str:
        return noted("save", title=title, body=body)

    return [get_weather, get_time, now, f, stock, add, write_file, save]


async def run(
    *replies: Reply,
    kind: str = "openai",
    make: Make | None = None,
    retry: RetryConfig = ONCE,
    otherwise: Reply | None = None,
    max_turns: int = 5,
    session_id: str | None = None,
    extra: Sequence[Tool[..., Any]] = (),
    **options: Any,
) -> Outcome:
    """A run against a server that gives these replies, then a text "ok"."""
    rendered = RENDERERS[kind].answer(Spoken("ok"))
    fine = Raw(rendered.opening + rendered.ending, headers={"content-type": RENDERERS[kind].content_type})
    ran: list[tuple[str, Mapping[str, object]]] = []
    async with ModelServer(replies, otherwise=otherwise or fine, judged=kind == "openai") as server:
        provider = (make or _MAKERS[kind])(server.base_url, retry)
        offered = {it.name: it for it in (*tools(ran), *extra)}
        plane = LocalExecutionPlane().register(*offered.values())
        runner = RuntimeRunner(RuntimeOptions(provider=provider, execution_plane=plane, max_turns=max_turns, **options))
        events = [event async for event in runner.run_streaming("go", session_id=session_id)]
        await provider.aclose()
    return Outcome(events, [one.body for one in server.requests], ran, server.refused)
