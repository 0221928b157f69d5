"""Where cache breakpoints stand in the dialects that have them, which requests carry a key, how long caches live."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from deepstrike import AnthropicProvider, FallbackProvider, OpenAIProvider, QwenProvider
from deepstrike.errors import ConfigError
from deepstrike.providers.base import Memo, ModelInfo, ModelRequest, Provider
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.models import register
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.wire.message import AssistantBlock, CallBlock, Image, ResultBlock, Text, ToolSpec, Turn, UserBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.providers.service import ServiceProvider

KEY = "sk-test-key-1"
ADD = ToolSpec("add", "Add.", '{"type":"object"}')
GOAL = UserBlock((Text("a"),))
MARKS = ("cache_control", "prompt_cache_breakpoint")
MARKED = [
    AnthropicProvider(KEY),
    QwenProvider(KEY),
    OpenAIProvider(KEY, "gpt-6-luna"),
    OpenAIProvider(KEY, "gpt-5.6", api="chat"),
]


def encoded(
    provider: ServiceProvider, turns: Sequence[Turn], extensions: Mapping[str, object] | None = None, key: str = "k"
) -> bytes:
    """The body of the first request with these turns."""
    request = ModelRequest("s", "k", turns, (ADD,), extensions or {}, memo=Memo(), cache_key=key)
    return provider._profile.dialect.encode(provider._asked(request))


def parts_of(body: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The parts of all messages and items, in order."""
    listed = body.get("messages", body.get("input"))
    assert isinstance(listed, list)
    found: list[Mapping[str, object]] = []
    for message in listed:
        content = message.get("content", message.get("output"))
        found += content if isinstance(content, list) else [message]
    return found


def is_marked(part: Mapping[str, object]) -> bool:
    return any(mark in part for mark in MARKS)


def rounds(count: int, calls: int) -> list[Turn]:
    """A goal, and so many rounds of so many calls."""
    turns: list[Turn] = [GOAL]
    for number in range(count):
        ids = [f"c{number}_{each}" for each in range(calls)]
        turns.append(AssistantBlock(tuple(CallBlock(each, "add", "{}") for each in ids)))
        turns += [ResultBlock(each, "add", (Text(f"r{each}"),)) for each in ids]
    return turns


@pytest.mark.parametrize("provider", MARKED, ids=lambda provider: provider.dialect)
@pytest.mark.parametrize("calls", [1, 20])
def test_given_rounds_of_calls_when_encoded_then_the_end_of_the_request_before_is_marked(
    provider: ServiceProvider, calls: int
) -> None:
    before, now = (parts_of(json.loads(encoded(provider, rounds(count, calls)))) for count in (3, 4))

    last = max(at for at, part in enumerate(before) if is_marked(part))
    marked = [at for at, part in enumerate(now) if is_marked(part)]
    assert last == len(before) - 1
    assert last in marked
    assert marked[-1] == len(now) - 1
    assert (
        b"".join(encoded(provider, rounds(4, calls)).split()).count(b'"ephemeral"')
        + encoded(provider, rounds(4, calls)).count(b'"prompt_cache_breakpoint"')
        == 4
    )


@pytest.mark.parametrize("provider", MARKED, ids=lambda provider: provider.dialect)
def test_given_one_memo_or_a_new_one_when_encoded_then_the_marks_are_the_same(provider: ServiceProvider) -> None:
    memo, turns = Memo(), rounds(5, 3)
    grown = b""
    for end in (1, 5, 9, 13, 17, 21):
        request = ModelRequest("s", "k", turns[:end], (ADD,), {}, memo=memo, cache_key="k")
        grown = provider._profile.dialect.encode(provider._asked(request))

    assert grown == encoded(provider, turns)


def test_given_qwen_when_encoded_then_marked_parts_have_the_services_form() -> None:
    turns: list[Turn] = [GOAL, AssistantBlock((CallBlock("c", "add", "{}"),)), ResultBlock("c", "add", (Text("3"),))]
    mark = {"type": "ephemeral"}

    messages = json.loads(encoded(QwenProvider(KEY), turns))["messages"]

    assert [message["content"] for message in messages] == [
        [{"type": "text", "text": "s"}],
        [{"type": "text", "text": "k", "cache_control": mark}],
        [{"type": "text", "text": "a", "cache_control": mark}],
        "",
        [{"type": "text", "text": "3", "cache_control": mark}],
    ]


def test_given_an_image_at_the_end_when_encoded_then_it_carries_the_mark() -> None:
    photo = UserBlock((Text("look"), Image(url="https://x.test/a.png")))

    (message,) = json.loads(encoded(OpenAIProvider(KEY, "gpt-6-luna"), [photo]))["input"][2:]

    assert [is_marked(part) for part in message["content"]] == [False, True]


@pytest.mark.parametrize(
    ("provider", "extensions"),
    [
        (QwenProvider(KEY, "qwen-turbo"), {}),
        (QwenProvider(KEY, base_url="https://gateway.test/v1"), {}),
        (QwenProvider(KEY), {"cache_ttl": "off"}),
        (OpenAIProvider(KEY, "gpt-5-mini"), {}),
        (OpenAIProvider(KEY, "gpt-6-luna", base_url="https://gateway.test/v1", api="responses"), {}),
        (DeepSeekProvider(KEY), {}),
    ],
)
def test_given_no_marked_cache_when_encoded_then_contents_are_texts_without_marks(
    provider: ServiceProvider, extensions: Mapping[str, object]
) -> None:
    body = encoded(provider, rounds(1, 1), extensions)

    assert not any(mark.encode() in body for mark in MARKS)
    assert parts_of(json.loads(body))[-1].get("content", parts_of(json.loads(body))[-1].get("output")) == "rc0_0"


def test_given_a_region_of_qwens_when_encoded_then_it_is_the_vendors_own() -> None:
    abroad = QwenProvider(KEY, base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1")

    assert encoded(abroad, [GOAL]).count(b'"cache_control"') == 2


def test_given_a_life_that_qwen_has_not_when_admitted_then_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be '5m' or 'off', not '1h'"):
        QwenProvider(KEY).admit({"cache_ttl": "1h"})


@pytest.mark.parametrize(
    ("provider", "extensions", "sent"),
    [
        (OpenAIProvider(KEY, "gpt-5-mini"), {}, "k"),
        (OpenAIProvider(KEY, "gpt-6-luna"), {}, "k"),
        (OpenAIProvider(KEY, "gpt-6-luna", base_url="https://eu.api.openai.com/v1"), {}, "k"),
        (OpenAIProvider(KEY, "gpt-6-luna"), {"prompt_cache_key": "mine"}, "mine"),
        (OpenAIProvider(KEY, "gpt-6-luna"), {"prompt_cache_key": ""}, None),
        (OpenAIProvider(KEY, "gpt-5-mini", base_url="https://gateway.test/v1"), {}, None),
        (DeepSeekProvider(KEY), {}, None),
        (QwenProvider(KEY), {}, None),
        (AnthropicProvider(KEY), {}, None),
    ],
)
def test_given_a_vendor_when_encoded_then_it_gets_the_key_that_it_wants(
    provider: ServiceProvider, extensions: Mapping[str, object], sent: str | None
) -> None:
    assert json.loads(encoded(provider, [GOAL], extensions)).get("prompt_cache_key") == sent


def test_given_a_model_that_refuses_keys_when_encoded_then_none_is_sent() -> None:
    register(ModelInfo("gpt-keyless", refuses=frozenset({"prompt_cache_key"})))

    assert "prompt_cache_key" not in json.loads(encoded(OpenAIProvider(KEY, "gpt-keyless"), [GOAL]))


_MINUTE = 60_000


@pytest.mark.parametrize(
    ("provider", "extensions", "minutes"),
    [
        (AnthropicProvider(KEY), {}, 5),
        (AnthropicProvider(KEY), {"cache_ttl": "5m"}, 5),
        (AnthropicProvider(KEY), {"cache_ttl": "1h"}, 60),
        (AnthropicProvider(KEY), {"cache_ttl": "off"}, 0),
        (OpenAIProvider(KEY, "gpt-5-mini"), {}, 10),
        (OpenAIProvider(KEY, "gpt-5-mini"), {"prompt_cache_retention": "24h"}, 24 * 60),
        (OpenAIProvider(KEY, "gpt-5.5"), {}, 24 * 60),
        (OpenAIProvider(KEY, "gpt-6-luna"), {}, 30),
        (OpenAIProvider(KEY, "gpt-6-luna"), {"prompt_cache_options": {"ttl": "12h"}}, 12 * 60),
        (OpenAIProvider(KEY, "gpt-6-luna"), {"prompt_cache_options": {"mode": "implicit"}}, 30),
        (DeepSeekProvider(KEY), {}, 120),
        (QwenProvider(KEY), {}, 5),
        (FallbackProvider(AnthropicProvider(KEY), QwenProvider(KEY)), {"cache_ttl": "1h"}, 60),
        (FallbackProvider(ScriptedProvider(["x"]), AnthropicProvider(KEY)), {}, 5),
    ],
)
def test_given_a_vendor_and_extensions_when_asked_then_the_life_of_its_cache_is_known(
    provider: Provider, extensions: Mapping[str, object], minutes: int
) -> None:
    assert provider.cache_ms(extensions) == minutes * _MINUTE
