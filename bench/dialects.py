"""What reading and writing costs in each dialect, without a socket, beside the least that the same bytes ask for.

The floor reads: it splits at line ends, cuts the field name off, parses with `json.loads` and makes one object of ours
an event. Answers are those of `deepstrike.testing.renderers`, one event a push, as they come from a network.
"""

from __future__ import annotations

import json
from statistics import median
from time import process_time_ns
from typing import TYPE_CHECKING

from bench.clocks import cpu_us
from deepstrike.providers.base import Memo, ModelRequest
from deepstrike.stream import TextDelta
from deepstrike.testing.renderers import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Spoken
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, ToolSpec, UserBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.providers.service import ServiceProvider
    from deepstrike.testing.renderers import Renderer
    from deepstrike.wire.message import Turn

_ADDRESS = "http://127.0.0.1:9"
_EVENTS = 300
_ROUNDS = 60
_COMPARED = 30
_TURNS = 300
_SAID = "The sum of two and two is four, as far as anybody knows. " * 4


def _chat() -> ServiceProvider:
    from deepstrike import OpenAIProvider

    return OpenAIProvider("sk-bench-key", "gpt-4.1", api="chat", base_url=_ADDRESS)


def _messages() -> ServiceProvider:
    from deepstrike import AnthropicProvider

    return AnthropicProvider("sk-bench-key", base_url=_ADDRESS)


def _responses() -> ServiceProvider:
    from deepstrike import OpenAIProvider

    return OpenAIProvider("sk-bench-key", "gpt-5.6", api="responses", base_url=_ADDRESS)


def _gemini() -> ServiceProvider:
    from deepstrike import GeminiProvider

    return GeminiProvider("sk-bench-key", base_url=_ADDRESS)


def _ollama() -> ServiceProvider:
    from deepstrike import OllamaProvider

    return OllamaProvider("qwen3", _ADDRESS)


DIALECTS: dict[str, tuple[Callable[[], ServiceProvider], Renderer]] = {
    "chat": (_chat, CHAT),
    "messages": (_messages, MESSAGES),
    "responses": (_responses, RESPONSES),
    "gemini": (_gemini, GEMINI),
    "ollama": (_ollama, OLLAMA),
}


def measure(who: str, case: str) -> list[float]:
    """The samples of `decode_DIALECT` or `encode_DIALECT`."""
    what, _, dialect = case.partition("_")
    return decode(who, dialect) if what == "decode" else [growth(dialect) for _ in range(5)]


def decode(who: str, dialect: str) -> list[float]:
    """CPU of one event of an answer, in microseconds: reader and decoder, or the floor."""
    make, renderer = DIALECTS[dialect]
    rendered = renderer.answer(Spoken("abc" * _EVENTS))
    events = [*rendered.opening, *rendered.ending]
    read = _reading(make()) if who == "deepstrike" else _floor
    samples = []
    for _ in range(10):
        before = cpu_us()
        for _ in range(_ROUNDS):
            if read(events) < _EVENTS:
                raise RuntimeError("not all text deltas were found")
        samples.append((cpu_us() - before) / _ROUNDS / len(events))
    return samples[1:]


def _reading(provider: ServiceProvider) -> Callable[[list[bytes]], int]:
    asked = provider._asked(ModelRequest("", "", (UserBlock((Text("go"),)),), (), {}))
    dialect = provider._profile.dialect

    def read(events: list[bytes]) -> int:
        reader, decoder = dialect.reader(), dialect.decoder(asked)
        found = [event for data in events for event in decoder.feed(reader.push(data))]
        return sum(isinstance(event, TextDelta) for event in [*found, *decoder.end()])

    return read


def _floor(events: list[bytes]) -> int:
    found: list[TextDelta] = []
    tail = b""
    for data in events:
        *lines, tail = (tail + data).split(b"\n")
        for line in lines:
            payload = line[6:] if line.startswith(b"data: ") else line
            if payload.startswith(b"{"):
                chunk = json.loads(payload)
                found.append(TextDelta(chunk.get("delta") or "abc"))
    return len(found)


def growth(dialect: str) -> float:
    """What the last requests of 300 cost by the first ones: the copy of the body is all that may grow."""
    taken = encode(dialect)
    return median(taken[-_COMPARED:]) / median(taken[:_COMPARED])


def encode(dialect: str) -> list[float]:
    """CPU of each request of a run, in microseconds, each with one reply and one result more than the one before."""
    provider = DIALECTS[dialect][0]()
    turns: list[Turn] = [UserBlock((Text("go"),))]
    memo, taken = Memo(), list[float]()
    tools = (ToolSpec("add", "Add two numbers.", '{"type":"object","properties":{"x":{"type":"integer"}}}'),)
    for turn in range(_TURNS):
        before = process_time_ns()
        provider._question(ModelRequest("Be brief.", "", tuple(turns), tools, {}, memo=memo))
        taken.append((process_time_ns() - before) / 1000)
        call = CallBlock(f"call_{turn}", "add", '{"x":1}')
        turns.append(AssistantBlock((Text(_SAID), call), provider.dialect, provider.info.id))
        turns.append(ResultBlock(call.id, call.name, (Text(_SAID),)))
    return taken[1:]
