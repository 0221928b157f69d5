"""Which model a command talks to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepstrike.cli.probe import LocalServer
    from deepstrike.providers.base import LLMProvider

KEYS: Mapping[str, str] = {
    "OPENAI_API_KEY": "openai",
    "ANTHROPIC_API_KEY": "anthropic",
    "GEMINI_API_KEY": "gemini",
    "DEEPSEEK_API_KEY": "deepseek",
    "MOONSHOT_API_KEY": "kimi",
    "DASHSCOPE_API_KEY": "qwen",
    "MINIMAX_API_KEY": "minimax",
}
"""The variables that hold a key this package can use, and whose key; the first that is set is taken."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, how it is called, and why it is this one."""

    name: str
    why: str
    provider: Callable[[], LLMProvider]


def choose(model: str | None, base_url: str | None, local: Callable[[], list[LocalServer]]) -> Choice:
    """The model that was asked for, else the first that there is.

    `model` is `vendor:name` or `demo`. Without it: a configured address or key, a model server on this machine, the
    demo model. `local` looks for such servers; it is asked only when nothing is configured. Raises `ConfigError` for a
    vendor that is not known.
    """
    if model is not None:
        return _asked_for(model, base_url)
    if base_url is not None:
        return Choice(f"the default model at {shown_address(base_url)}", "--base-url", lambda: _openai(None, base_url))
    if address := os.environ.get("OPENAI_BASE_URL"):
        return Choice(
            f"the default model at {shown_address(address)}", "OPENAI_BASE_URL is set", lambda: _openai(None, None)
        )
    for key, vendor in KEYS.items():
        if os.environ.get(key):
            return Choice(f"{vendor}'s default model", f"{key} is set", partial(_VENDORS[vendor], None, None))
    if servers := local():
        first = servers[0]
        name = f"{first.models[0]} at {first.base_url}"
        why = f"{first.name} runs on this machine"
        return Choice(name, why, lambda: _openai(first.models[0], first.base_url))
    return Choice("demo", "no key is set and no model server runs on this machine", _demo)


def _asked_for(model: str, base_url: str | None) -> Choice:
    vendor, _, name = model.partition(":")
    if vendor == "demo" and base_url is not None:
        raise ConfigError(
            "the demo model is built in and has no address: leave out --base-url, or name another --model"
        )
    make = _VENDORS.get(vendor)
    if make is None or (vendor != "demo" and not name):
        raise ConfigError(
            f"unknown model {model!r}: write vendor:name, with one of {', '.join(_VENDORS)} as the vendor"
        )
    return Choice(model, "--model", lambda: make(name, base_url))


def _openai(name: str | None = None, base_url: str | None = None) -> LLMProvider:
    return _VENDORS["openai"](name, base_url)


def _demo(_name: str | None = None, _base_url: str | None = None) -> LLMProvider:
    from deepstrike.providers.demo import DemoProvider

    return DemoProvider()


@dataclass(frozen=True, slots=True)
class _Vendor:
    """A provider, imported when it is asked for; all of them take a model and an address by these names."""

    module: str
    name: str

    def __call__(self, model: str | None = None, base_url: str | None = None) -> LLMProvider:
        make = cast("Callable[..., LLMProvider]", vars(import_module(f"deepstrike.providers.{self.module}"))[self.name])
        return make(base_url=base_url) if model is None else make(model=model, base_url=base_url)


_VENDORS: Mapping[str, Callable[[str | None, str | None], LLMProvider]] = {
    "openai": _Vendor("openai", "OpenAIProvider"),
    "anthropic": _Vendor("anthropic", "AnthropicProvider"),
    "gemini": _Vendor("gemini", "GeminiProvider"),
    "deepseek": _Vendor("deepseek", "DeepSeekProvider"),
    "kimi": _Vendor("kimi", "KimiProvider"),
    "qwen": _Vendor("qwen", "QwenProvider"),
    "minimax": _Vendor("minimax", "MiniMaxProvider"),
    "ollama": _Vendor("ollama", "OllamaProvider"),
    "demo": _demo,
}


def shown_address(address: str) -> str:
    """The address without a user name and password that may stand in it."""
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
