"""The recorded exchanges of real services that lie beside the checkout, and who asks for them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wires import Said, ask

from deepstrike.providers.anthropic import AnthropicProvider
from deepstrike.providers.compatible import OpenAICompatibleProvider
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.gemini import GeminiProvider
from deepstrike.providers.kimi import KimiProvider
from deepstrike.providers.minimax import MiniMaxProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.qwen import QwenProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deepstrike.providers.base import ModelEvent
    from deepstrike.providers.dialects.base import Decoder, Reader
    from deepstrike.providers.service import ServiceOptions, ServiceProvider

SHARED = Path(__file__).parents[3] / "shared"
RECORDINGS = SHARED / "recordings"
KEY = "sk-replay-key-0123456789"
NATIVE = "dashscope"
"""A protocol of its own that no provider of ours speaks: Qwen is asked by the compatible one."""
_SOME_ADDRESS = "http://127.0.0.1:9"
_COUNTS = ("input", "output", "cached", "cache_write", "reasoning")
# Behind the root of a recording; some clients add the version themselves.
_VERSIONS = {"anthropic": "", "gemini": "/v1beta", "ollama": ""}


@dataclass(frozen=True)
class Case:
    """One recorded exchange."""

    meta: dict[str, Any]
    expected: dict[str, Any]
    request: dict[str, Any]
    body: bytes

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return str(self.meta["name"])

    @property
    def protocol(self) -> str:
        return str(self.meta["protocol"])

    @property
    def streamed(self) -> bool:
        """A stream that ends well, with the content type of one."""
        kind = self.meta["headers"].get("content-type", "")
        return self.expected["kind"] == "ok" and ("event-stream" in kind or "ndjson" in kind)

    @property
    def whole(self) -> bool:
        """A good answer in one piece."""
        return self.expected["kind"] == "ok" and not self.streamed

    @cached_property
    def finished_at(self) -> int:
        """How many bytes there are until the finish is known."""
        reader, decoder = codec(self)
        for at in range(len(self.body)):
            decoder.feed(reader.push(self.body[at : at + 1]))
            if decoder.finished:
                return at
        return len(self.body)

    def says(self) -> dict[str, object]:
        """What an answer must say, in the form of `said_by`."""
        expected, usage = self.expected, self.expected["usage"]
        counts = {name: usage[name] or 0 for name in _COUNTS} if usage["input"] is not None else None
        if counts is not None and self.meta["provider"] == "xai":  # its output leaves the reasoning out, ours has it
            counts["output"] += counts["reasoning"]
        calls = [(call["id"] or "", call["name"], call["arguments_raw"]) for call in expected["tool_calls"]]
        if self.protocol in ("gemini", "ollama"):  # there arguments are objects, which have no text of their own
            calls = [(call_id, name, json.loads(arguments)) for call_id, name, arguments in calls]
        return {
            "text": expected["text"] + (expected["refusal"] or ""),
            "thinking": expected["thinking"],
            "calls": calls,
            "usage": counts,
            "finish": expected["finish_reason"],
        }

    def said_by(self, said: Said) -> dict[str, object]:
        """An answer as values to compare with `says`."""
        calls: list[tuple[str, str, object]] = [(call.id, call.name, call.arguments_text) for call in said.calls]
        if self.protocol in ("gemini", "ollama"):
            calls = [(call.id, call.name, json.loads(call.arguments_text)) for call in said.calls]
        usage = None if said.usage is None else {name: getattr(said.usage, name) for name in _COUNTS}
        return {"text": said.text, "thinking": said.thinking, "calls": calls, "usage": usage, "finish": said.finish}


def load() -> list[Case]:
    """All recordings; none where they do not lie beside the checkout."""
    found = []
    for path in sorted(RECORDINGS.glob("*/*/meta.json")):
        meta, expected, request = (
            json.loads((path.parent / f"{name}.json").read_text("utf-8")) for name in ("meta", "expected", "request")
        )
        found.append(Case(meta, expected, request, (path.parent / "response.raw").read_bytes()))
    return found


CASES = load()
OURS = [case for case in CASES if case.protocol != NATIVE]


def named(name: str) -> Case:
    """The recording of this name."""
    return next(case for case in CASES if case.name == name)


def provider(
    case: Case, url: str = _SOME_ADDRESS, *, model: str | None = None, retry: RetryConfig | None = None
) -> ServiceProvider:
    """The public provider that speaks to the service of this recording, without retries if none are given."""
    retry = retry or RetryConfig(max_retries=0)
    model = model or "any"
    address = url + _VERSIONS.get(case.protocol, "/v1")
    options: ServiceOptions = {
        "base_url": address,
        "retry_config": retry,
        "circuit_breaker": CircuitBreaker(retry),
    }
    if case.protocol == "anthropic":
        return AnthropicProvider(KEY, model, **options)
    if case.protocol == "gemini":
        return GeminiProvider(KEY, "gemini-2.5-flash" if model == "any" else model, **options)
    if case.protocol == "ollama":
        return OllamaProvider("qwen3:4b" if model == "any" else model, url, retry_config=retry)
    if case.protocol == "openai-responses":
        return OpenAIProvider(KEY, model, api="responses", **options)
    return _chat_provider(case, model, options)


def _chat_provider(case: Case, model: str, options: ServiceOptions) -> ServiceProvider:
    vendor = case.meta["provider"]
    own = {"deepseek": DeepSeekProvider, "kimi": KimiProvider, "minimax": MiniMaxProvider, "qwen": QwenProvider}
    if vendor in own:
        found: ServiceProvider = own[vendor](KEY, model, **options)
        return found
    if vendor == "openai":
        return OpenAIProvider(KEY, model, api="chat", **options)
    # Ollama's compatible route, whose own profile speaks another dialect.
    profile = {"ollama": "vllm"}.get(vendor, vendor)
    retry = options["retry_config"]
    return OpenAICompatibleProvider(options["base_url"] or "", model, KEY, profile=profile, retry_config=retry)


def codec(case: Case) -> tuple[Reader, Decoder]:
    """Reader and decoder as the provider makes them for this recording."""
    model = provider(case)
    dialect = model._profile.dialect
    return dialect.reader(), dialect.decoder(model._asked(ask()))


def decode_pieces(case: Case, pieces: Iterable[bytes]) -> list[ModelEvent]:
    """The events of a body that arrives in these pieces."""
    reader, decoder = codec(case)
    out: list[ModelEvent] = []
    for piece in pieces:
        out += decoder.feed(reader.push(piece))
        if decoder.done:
            break
    for payload in reader.close():
        out += decoder.feed_last(payload)
    return out + decoder.end()


@dataclass(frozen=True)
class Replay:
    """A running replay server."""

    root: str

    def url(self, name: str, **options: object) -> str:
        """The address of a recording, with the server's options."""
        chosen = ",".join(f"{key}={value}" for key, value in options.items())
        return f"{self.root}/~{chosen}/{name}" if chosen else f"{self.root}/{name}"


def replaying() -> Iterator[Replay]:
    """Serves the recordings; to be made a fixture."""
    program = [sys.executable, str(SHARED / "tools" / "replay_server.py"), "--port", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield Replay(server.stdout.readline().split()[-1])
        server.terminate()
