"""Which model `provider:name` means, and which one there is when nobody says."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from deepstrike.errors import ConfigError
from deepstrike.providers.settings import shown
from deepstrike.providers.transport.probe import local_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deepstrike.providers.base import LLMProvider
    from deepstrike.providers.transport.probe import LocalServer

KEYS: Final[Mapping[str, str]] = {
    "OPENAI_API_KEY": "openai",
    "ANTHROPIC_API_KEY": "anthropic",
    "GEMINI_API_KEY": "gemini",
    "DEEPSEEK_API_KEY": "deepseek",
    "MOONSHOT_API_KEY": "kimi",
    "DASHSCOPE_API_KEY": "qwen",
    "MINIMAX_API_KEY": "minimax",
}
"""The variables that hold the key of a provider with a usual model, and whose key; the first that is set is taken."""

DEMO: Final = "demo"
"""What the embedded demo model is called, as a choice and as a model."""

# Words in the ids of models that hold no conversation.
_NO_CONVERSATION: Final = ("embed", "rerank", "whisper")


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, how it is called, and why it is this one. `provider` makes it, and raises `ConfigError` as that does."""

    name: str
    why: str
    provider: Callable[[], LLMProvider]


def choose(
    model: str | None = None,
    base_url: str | None = None,
    local: Callable[[], Sequence[LocalServer]] = local_servers,
) -> Choice:
    """The model that was asked for, else the first that there is.

    `model` is `provider:name` or `demo`; `base_url` another address for it. Without a model: the address given or in
    `OPENAI_BASE_URL`, a configured key, a model server on this machine, the embedded demo model. `local` looks for such
    servers; it is asked only when nothing is configured, and by default takes at most 0.4 s. Nothing of a goal is sent
    anywhere. Raises `ConfigError` for an id that means no model; it names the providers, and the nearest.
    """
    if model is not None:
        return _asked_for(model, base_url)
    if base_url is not None:
        return Choice(f"the default model at {shown_address(base_url)}", "its address is given", _openai_at(base_url))
    if address := os.environ.get("OPENAI_BASE_URL"):
        return Choice(f"the default model at {shown_address(address)}", "OPENAI_BASE_URL is set", _openai_at(None))
    for key, provider in KEYS.items():
        if os.environ.get(key):
            return Choice(f"{provider}'s default model", f"{key} is set", partial(_PROVIDERS[provider], None, None))
    for server in local():
        return _running(server)
    return Choice(DEMO, "no key is set and no model server runs on this machine", _demo)


def names() -> list[str]:
    """What may stand before the colon of an id, and `demo`."""
    return [*_PROVIDERS]


def _running(server: LocalServer) -> Choice:
    talking = (name for name in server.models if not any(word in name.lower() for word in _NO_CONVERSATION))
    model = next(talking, server.models[0])
    make = partial(_PROVIDERS[server.provider], model, server.address)
    return Choice(f"{model} at {server.address}", f"{server.name} runs on this machine", make)


def _asked_for(model: str, base_url: str | None) -> Choice:
    provider, _, name = model.partition(":") if isinstance(model, str) else ("", "", "")
    make = _PROVIDERS.get(provider)
    if make is None or bool(name.strip()) == (provider == DEMO):
        raise ConfigError(
            f"unknown model {shown(model)}: write provider:name, with one of {', '.join(_PROVIDERS)} as the provider"
            + _nearest(model)
        )
    if provider == DEMO and base_url is not None:
        raise ConfigError("the demo model is built in and has no address: leave the address out, or name another model")
    return Choice(model, "it was asked for", lambda: make(name, base_url))


def _nearest(model: object) -> str:
    """Words for the id that was likely meant; "" where none is near."""
    if not isinstance(model, str) or not model.strip():
        return ""
    provider, colon, name = model.partition(":")
    if not colon:
        known = _known_ids()
        if near := difflib.get_close_matches(model, known, n=1, cutoff=0.75):
            return f"; did you mean {known[near[0]]!r}?"
    found = difflib.get_close_matches(provider.lower(), _PROVIDERS, n=1, cutoff=0.6)
    if not found:
        return ""
    return "; did you mean 'demo'?" if found[0] == "demo" else f"; did you mean {found[0] + ':' + (name or 'NAME')!r}?"


def _known_ids() -> dict[str, str]:
    """The models of the model table, each with its whole id."""
    tables = {provider: import_module(f"deepstrike.providers.tables.{provider}") for provider in KEYS.values()}
    return {row: f"{provider}:{row}" for provider, table in tables.items() for row in _rows(table)}


def _rows(table: object) -> Iterator[str]:
    yield from cast("Mapping[str, object]", vars(table)["ROWS"])


def _openai_at(base_url: str | None) -> Callable[[], LLMProvider]:
    return partial(_PROVIDERS["openai"], None, base_url)


def _demo(_name: str | None = None, _base_url: str | None = None) -> LLMProvider:
    from deepstrike.providers.demo import DemoProvider

    return DemoProvider()


@dataclass(frozen=True, slots=True)
class _Vendor:
    """A provider of its own class, imported when it is asked for; all take a model and an address by these names."""

    module: str
    name: str

    def __call__(self, model: str | None, base_url: str | None) -> LLMProvider:
        make = cast("Callable[..., LLMProvider]", vars(import_module(f"deepstrike.providers.{self.module}"))[self.name])
        return make(base_url=base_url) if model is None else make(model=model, base_url=base_url)


@dataclass(frozen=True, slots=True)
class _Server:
    """A server without a class of its own, by its profile. `placed` says that the profile has its address."""

    profile: str
    placed: bool = True

    def __call__(self, model: str | None, base_url: str | None) -> LLMProvider:
        from deepstrike.providers.compatible import OpenAICompatibleProvider
        from deepstrike.providers.tables.servers import SERVERS

        usual = SERVERS[self.profile].base_url
        if base_url is None and not self.placed:
            raise ConfigError(
                f"{self.profile} has no address for everybody: give yours, such as {usual!r}, as in "
                f"OpenAICompatibleProvider(base_url=…, model=…, profile={self.profile!r})"
            )
        return OpenAICompatibleProvider(base_url or usual, model or "", profile=self.profile)


_PROVIDERS: Final[Mapping[str, Callable[[str | None, str | None], LLMProvider]]] = {
    "openai": _Vendor("openai", "OpenAIProvider"),
    "anthropic": _Vendor("anthropic", "AnthropicProvider"),
    "gemini": _Vendor("gemini", "GeminiProvider"),
    "deepseek": _Vendor("deepseek", "DeepSeekProvider"),
    "kimi": _Vendor("kimi", "KimiProvider"),
    "qwen": _Vendor("qwen", "QwenProvider"),
    "minimax": _Vendor("minimax", "MiniMaxProvider"),
    "ollama": _Vendor("ollama", "OllamaProvider"),
    "openrouter": _Server("openrouter"),
    "groq": _Server("groq"),
    "xai": _Server("xai"),
    "mistral": _Server("mistral"),
    "zai": _Server("zai"),
    "azure": _Server("azure", placed=False),
    "vllm": _Server("vllm"),
    "llamacpp": _Server("llamacpp"),
    "lmstudio": _Server("lmstudio"),
    DEMO: _demo,
}


def shown_address(address: str) -> str:
    """The address without a user name and password that may stand in it."""
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
