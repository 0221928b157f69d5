"""The tables of docs/providers.md say what the code has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from deepstrike.errors import ConfigError
from deepstrike.providers.anthropic import ANTHROPIC, AnthropicProvider
from deepstrike.providers.deepseek import DEEPSEEK, DeepSeekProvider
from deepstrike.providers.gemini import GEMINI, GeminiProvider
from deepstrike.providers.kimi import KIMI, KimiProvider
from deepstrike.providers.minimax import MINIMAX, MiniMaxProvider
from deepstrike.providers.ollama import LOCAL, OllamaProvider
from deepstrike.providers.openai import OPENAI_CHAT, OPENAI_RESPONSES, OpenAIProvider
from deepstrike.providers.profile import Profile
from deepstrike.providers.qwen import QWEN, QwenProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.tables.servers import SERVERS
from deepstrike.providers.transport.base import Timeouts
from deepstrike.providers.transport.slots import DEFAULT_LIMIT

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text("utf-8")
CLASSES: list[tuple[type[ServiceProvider], Profile]] = [
    (OpenAIProvider, OPENAI_RESPONSES),
    (AnthropicProvider, ANTHROPIC),
    (GeminiProvider, GEMINI),
    (QwenProvider, QWEN),
    (DeepSeekProvider, DEEPSEEK),
    (MiniMaxProvider, MINIMAX),
    (KimiProvider, KIMI),
    (OllamaProvider, LOCAL),
]
FOR_ALL = {"temperature", "top_p", "stop", "reasoning_effort", "max_output_tokens", "expose_reasoning", "extra_body"}
CHAT_FAMILY = "chat family (all of Qwen, DeepSeek, MiniMax, Kimi, compatible servers)"
LOCAL_SERVERS = "vLLM, llama.cpp, LM Studio, generic"
EXTENSIONS: dict[str, Profile] = {
    "OpenAI": OPENAI_CHAT,
    "Anthropic": ANTHROPIC,
    "Gemini": GEMINI,
    "Qwen": QWEN,
    "DeepSeek": DEEPSEEK,
    "MiniMax": MINIMAX,
    "Kimi": KIMI,
    "Ollama": LOCAL,
    "OpenRouter": SERVERS["openrouter"],
    LOCAL_SERVERS: SERVERS["vllm"],
}
OF_THE_CHAT_FAMILY = ("Qwen", "DeepSeek", "MiniMax", "Kimi", "OpenRouter")


def row(first: str) -> list[str]:
    """The cells of the table row that begins so."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def words(cell: str) -> set[str]:
    """The names in it, without what stands in brackets behind them."""
    return set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", cell)))


@pytest.mark.parametrize(("kind", "profile"), CLASSES)
def test_given_the_table_of_classes_when_read_then_each_row_is_what_the_code_has(
    kind: type[ServiceProvider], profile: Profile
) -> None:
    _, model, key, address, thinking, schema, _ = row(f"`{kind.__name__}`")
    default = inspect.signature(kind.__init__).parameters["model"].default
    assert (key, address) == (f"`{profile.key_variable}`", f"`{profile.url_variable}`")
    assert model == ("(its first argument)" if default is inspect.Parameter.empty else f"`{default}`")
    assert words(thinking) <= set(profile.fields)
    assert schema == ("native" if profile.dialect.structured else "no")


@pytest.mark.parametrize(("name", "profile"), EXTENSIONS.items())
def test_given_the_table_of_extensions_when_read_then_it_names_each_one_and_no_other(
    name: str, profile: Profile
) -> None:
    told = words(row(name)[1]) | FOR_ALL
    if name in OF_THE_CHAT_FAMILY:
        told |= words(row(CHAT_FAMILY)[1])
    if name == LOCAL_SERVERS:
        told |= set(OPENAI_CHAT.fields) & set(profile.fields)
    assert told == set(profile.fields)


def test_given_the_text_on_servers_and_limits_when_read_then_its_names_and_numbers_are_the_codes() -> None:
    section = PAGE.partition("## Compatible servers")[2].partition("## ")[0]
    assert {f"`{name}`" for name in SERVERS} <= set(re.findall(r"`\w+`", section))
    limits = Timeouts()
    assert [row(f"`{name}`")[1].split(" s")[0] for name in ("connect", "first_event", "idle", "progress")] == [
        f"{limit:g}" for limit in (limits.connect, limits.first_event, limits.idle, limits.progress)
    ]
    assert repr(RetryConfig()) in PAGE
    assert f"At most {DEFAULT_LIMIT} calls to one address" in PAGE


@pytest.mark.parametrize("name", [name for name, profile in SERVERS.items() if profile.key_needed])
def test_given_a_server_of_the_table_when_its_key_is_missing_then_its_variable_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = SERVERS[name]
    monkeypatch.delenv(profile.key_variable, raising=False)
    with pytest.raises(ConfigError, match=f"set {profile.key_variable}"):
        ServiceProvider(profile, None, "any", base_url=profile.base_url)
