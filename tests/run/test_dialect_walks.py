"""Whatever befalls a session, every dialect's requests are well formed, the same in any process, and grow in an epoch.

Some 10,000 requests, ten times as many with `DEEPSTRIKE_FULL=1`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest
from walks import Walk

from deepstrike import (
    AnthropicProvider,
    DeepSeekProvider,
    GeminiProvider,
    KimiProvider,
    MiniMaxProvider,
    OllamaProvider,
    OpenAICompatibleProvider,
    OpenAIProvider,
    QwenProvider,
)
from deepstrike.providers.base import Memo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deepstrike.providers.base import ModelRequest
    from deepstrike.providers.service import ServiceProvider

    Said = Mapping[str, object]

KEY = "sk-test-key-1"
HERE = "http://127.0.0.1:9/v1"
PROVIDERS: dict[str, ServiceProvider] = {
    "anthropic": AnthropicProvider(KEY),
    "chat": OpenAIProvider(KEY, "gpt-4.1", api="chat"),
    "chat, marked": OpenAIProvider(KEY, "gpt-5.6", api="chat"),
    "responses": OpenAIProvider(KEY, "gpt-5-mini", api="responses"),
    "responses, marked": OpenAIProvider(KEY, "gpt-6-luna"),
    "gemini": GeminiProvider(KEY),
    "ollama": OllamaProvider("llama3"),
    "qwen": QwenProvider(KEY),
    "deepseek": DeepSeekProvider(KEY),
    "kimi": KimiProvider(KEY),
    "minimax": MiniMaxProvider(KEY),
    "compatible": OpenAICompatibleProvider(HERE, "m"),
    "mistral": OpenAICompatibleProvider(HERE, "m", profile="mistral"),
    "openrouter": OpenAICompatibleProvider(HERE, "m", profile="openrouter"),
}
FULL = os.environ.get("DEEPSTRIKE_FULL") == "1"
WALKS, PROMPTS = (80, 100) if FULL else (8, 100)
MARKS = (b',"cache_control":{"type":"ephemeral"}', b',"prompt_cache_breakpoint":{"mode":"explicit"}')
LISTS = ("messages", "input", "contents")
HEADS = ("tools", "system", "instructions", "systemInstruction")
_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_message = msgspec.json.Decoder(dict[str, object]).decode


class Encoded:
    """What one dialect made of the session so far: the last request of the epoch."""

    def __init__(self, name: str, provider: ServiceProvider) -> None:
        self._name = name
        self._provider = provider
        self._memo = Memo()
        self._epoch = ("", -1)
        self._before: tuple[list[bytes], list[bytes]] = ([], [])

    def take(self, request: ModelRequest) -> list[bytes]:
        """The next request's messages; what is wrong with them is asserted here."""
        epoch = (request.cache_key, request.epoch)
        if epoch != self._epoch:
            self._epoch, self._memo, self._before = epoch, Memo(), ([], [])
        body = self._unmarked(msgspec.structs.replace(request, memo=self._memo))
        anew = self._unmarked(msgspec.structs.replace(request, memo=Memo()))
        assert body == anew, f"{self._name}: another process would write this request in other bytes"
        fields = _raw(body)
        listed = next(fields[name] for name in LISTS if name in fields)
        messages = [bytes(item) for item in _items(listed)]
        head = [bytes(fields[name]) for name in HEADS if name in fields]
        before, head_before = self._before
        assert messages[: len(before)] == before, f"{self._name}: the request before is no beginning of this"
        assert not before or head == head_before, f"{self._name}: the head changed within an epoch"
        self._before = (messages, head)
        return messages

    def _unmarked(self, request: ModelRequest) -> bytes:
        """The request's bytes without its cache marks, of which there are at most four."""
        body = self._provider._profile.dialect.encode(self._provider._asked(request))
        assert sum(body.count(mark) for mark in MARKS) <= 4
        for mark in MARKS:
            body = body.replace(mark, b"")
        return body


def judge(name: str, messages: Sequence[bytes]) -> None:
    """Every call has its result directly behind it, in order, and the model does not have the last word."""
    open_calls: list[str] = []
    answering = False
    who = ""
    for who, kind, call in (each for message in messages for each in told(_message(message))):
        if kind == "result":
            assert open_calls, f"{name}: a result of {call} without its call"
            assert open_calls.pop(0) == call, f"{name}: the result of {call} is out of order"
            answering = bool(open_calls)
        else:
            assert not answering, f"{name}: {who} speaks between results, before those of {open_calls}"
            assert not open_calls or who == "model", f"{name}: the user speaks before the results of {open_calls}"
            open_calls += [call] if kind == "call" else []
    assert not open_calls, f"{name}: no results of {open_calls}"
    assert who == "user", f"{name}: the model has the last word"


def told(message: Said) -> Iterator[tuple[str, str, str]]:
    """Who says it, what it is (call, result, text) and the name that call and result have in common."""
    kind = message.get("type")
    if kind == "function_call":
        yield "model", "call", str(message["call_id"])
    elif kind == "function_call_output":
        yield "user", "result", str(message["call_id"])
    elif kind == "reasoning":
        yield "model", "text", ""
    elif message["role"] == "tool":
        yield "user", "result", str(message.get("tool_call_id", message.get("tool_name")))
    else:
        yield from spoken(message)


def spoken(message: Said) -> Iterator[tuple[str, str, str]]:
    """A message of one role with its parts."""
    who = "model" if message["role"] in ("assistant", "model") else "user"
    parts = message.get("parts", message.get("content"))
    assert parts not in ([], None) or message.get("tool_calls"), "an empty message"
    found = [part_of(part) for part in parts] if isinstance(parts, list) else [("text", "")]
    results = [at for at, (kind, _) in enumerate(found) if kind == "result"]
    assert results == list(range(len(results))), "results stand first in their message"
    for kind, name in found:
        yield who, kind, name
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        yield who, "call", str(call.get("id") or call["function"]["name"])


def part_of(part: Said) -> tuple[str, str]:
    """One part of a message of the messages or the Gemini wire; of any other one it is a text."""
    call, result = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        return "call", str(call["name"])
    if isinstance(result, dict):
        return "result", str(result["name"])
    if part.get("type") == "tool_use":
        return "call", str(part["id"])
    return ("result", str(part["tool_use_id"])) if part.get("type") == "tool_result" else ("text", "")


@pytest.mark.parametrize("seed", range(WALKS))
def test_given_a_random_life_when_encoded_in_every_dialect_then_requests_are_well_formed_and_grow(seed: int) -> None:
    walk = Walk(seed)
    dialects = {name: Encoded(name, provider) for name, provider in PROVIDERS.items()}

    for request in walk.requests(PROMPTS):
        for name, encoded in dialects.items():
            judge(name, encoded.take(request))

    assert walk.rewrites > 0
