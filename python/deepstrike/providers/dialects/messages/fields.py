"""The extensions of the messages wire: where each stands in a request, and which exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.providers.dialects.messages.thinking import thinks_by_budget
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.extensions import EXTRA_BODY, FLAG, NUMBER, TABLE, TEXT, WHOLE, Field

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelInfo

_EFFORTS = {"none": None, "minimal": "low"}
_CHOICES = {"auto": "auto", "none": "none", "any": "any", "required": "any"}
_LEAST_TOP_P = 0.95


def _effort(value: object) -> object:
    """Words of other vendors: the weakest is `low` here, and `none` says that nothing is asked for."""
    return _EFFORTS.get(value, value) if isinstance(value, str) else value


def _stops(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _choice(value: object) -> object:
    """A word, the name of a tool, or a choice in this vendor's or the chat form."""
    if isinstance(value, str):
        return {"type": _CHOICES[value]} if value in _CHOICES else {"type": "tool", "name": wire_name(value)}
    if isinstance(value, Mapping) and value.get("type") == "function":
        named = value.get("function", value)
        return {"type": "tool", "name": wire_name(str(named.get("name", "")))} if isinstance(named, Mapping) else value
    return value


def _not_parallel(value: object) -> object:
    return True if value is False else None


MESSAGES_FIELDS: dict[str, Field] = {
    "enable_thinking": Field((bool,), "true or false", sent=False),
    "thinking_budget": Field((int,), "a whole number of tokens", sent=False),
    "reasoning_effort": Field((str,), "a string", at=("output_config", "effort"), wire=_effort),
    "expose_reasoning": Field((bool,), "true or false", sent=False),
    "temperature": NUMBER,
    "top_p": NUMBER,
    "top_k": WHOLE,
    "stop": Field((str, list, tuple), "a string or a list of strings", at=("stop_sequences",), wire=_stops),
    "tool_choice": Field((str, dict), "a string or a dict", wire=_choice),
    "strict_tools": replace(FLAG, sent=False),
    "parallel_tool_calls": replace(FLAG, at=("tool_choice", "disable_parallel_tool_use"), wire=_not_parallel),
    "metadata": TABLE,
    "user": replace(TEXT, at=("metadata", "user_id")),
    "service_tier": TEXT,
    "cache_ttl": Field((str,), "'5m', '1h' or 'off'", sent=False, words=frozenset({"5m", "1h", "off"})),
    "betas": Field((list, tuple), "a list of strings", sent=False),
    "max_output_tokens": Field((int,), "a whole number above zero", sent=False),
    EXTRA_BODY: Field((dict,), "a dict", sent=False),
}


def check(given: Mapping[str, object]) -> None:
    """Raises `ConfigError` for a value that the wire has no word for."""
    betas = given.get("betas")
    if isinstance(betas, list | tuple) and not all(isinstance(beta, str) for beta in betas):
        raise ConfigError("extensions['betas'] must be a list of strings")


def clashing(given: Mapping[str, object], info: ModelInfo) -> dict[str, str]:
    """What cannot be sent beside the rest, each with the reason."""
    choice = _choice(given.get("tool_choice"))
    forced = isinstance(choice, Mapping) and choice.get("type") in ("any", "tool")
    found: dict[str, str] = {}
    if "always_thinks" in info.traits and given.get("enable_thinking") is False:
        found["enable_thinking"] = "this model always thinks; a low reasoning_effort makes it think less"
    if forced and "auto_tools_only" in info.traits:
        found["tool_choice"] = "this model takes no forced choice of tool"
    if not thinks_by_budget(given, info):
        return found
    if forced:
        found["tool_choice"] = "thinking excludes a forced choice of tool"
    if given.get("temperature") not in (None, 1):
        found["temperature"] = "thinking excludes every temperature but 1"
    if given.get("top_k") is not None:
        found["top_k"] = "thinking excludes it"
    top_p = given.get("top_p")
    if isinstance(top_p, int | float) and top_p < _LEAST_TOP_P:
        found["top_p"] = "thinking excludes a value below 0.95"
    return found
