"""Sampling and provider fields (`RuntimeOptions.extensions`): what there is, what it may hold, how it is sent."""

from __future__ import annotations

import difflib
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.providers.dialects.json_text import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepstrike.providers.base import ModelInfo

EXTRA_BODY = "extra_body"
# Sampling fields that reasoning models take only while they do not reason.
_SAMPLING = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"})
THINKS_UNSAMPLED = "thinks_unsampled"
"""Trait of a model that refuses only while it thinks what steers its sampling."""

_RESERVED = frozenset({"contents", "input", "messages", "model", "stream", "stream_options", "system", "tools"})


@dataclass(frozen=True, slots=True)
class Field:
    """An extension. `types` may hold it, `says` names them for people; `sent` is false for those that steer us only.

    `at` is where it stands in the request body, the field of its own name at the top if empty. `wire` turns its value
    into that of the wire; a result of None is not sent. `words` are the texts that it may be, where not any.
    """

    types: tuple[type, ...]
    says: str
    sent: bool = True
    at: tuple[str, ...] = ()
    wire: Callable[[object], object] | None = None
    words: frozenset[str] = frozenset()


NUMBER = Field((int, float), "a number")
WHOLE = Field((int,), "a whole number")
TEXT = Field((str,), "a string")
FLAG = Field((bool,), "true or false")
TABLE = Field((dict,), "a dict")

# Chat completions, as the vendor documents them (wire reference, 1.1). The output limit's wire name is the profile's.
CHAT_FIELDS: dict[str, Field] = {
    "temperature": NUMBER,
    "top_p": NUMBER,
    "presence_penalty": NUMBER,
    "frequency_penalty": NUMBER,
    "logit_bias": TABLE,
    "seed": WHOLE,
    "stop": Field((str, list, tuple), "a string or a list of strings"),
    "reasoning_effort": TEXT,
    "verbosity": TEXT,
    "tool_choice": Field((str, dict), "a string or a dict"),
    "parallel_tool_calls": FLAG,
    "response_format": TABLE,
    "service_tier": TEXT,
    "metadata": TABLE,
    "user": TEXT,
    "safety_identifier": TEXT,
    "prompt_cache_key": Field((str,), "a string", wire=lambda key: key or None),
    "prompt_cache_retention": TEXT,
    "store": FLAG,
    "max_output_tokens": Field((int,), "a whole number above zero", sent=False),
    "expose_reasoning": Field((bool,), "true or false", sent=False),
    "split_think": Field((bool,), "true or false", sent=False),
    EXTRA_BODY: Field((dict,), "a dict", sent=False),
}
_OPENAIS_OWN = frozenset(
    {
        "verbosity",
        "service_tier",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "store",
        "logit_bias",
    }
)
# What servers of this dialect have in common.
COMPATIBLE_FIELDS: dict[str, Field] = {name: it for name, it in CHAT_FIELDS.items() if name not in _OPENAIS_OWN}
# Extensions that some other vendor takes: a run that changes the vendor loses them with a warning, not with an error.
_ELSEWHERE = frozenset(CHAT_FIELDS) | {
    "betas",
    "cache_ttl",
    "cached_content",
    "chat_template_kwargs",
    "enable_search",
    "enable_thinking",
    "format",
    "keep_alive",
    "min_p",
    "models",
    "num_ctx",
    "options",
    "preserve_thinking",
    "prompt_cache_options",
    "provider",
    "reasoning_context",
    "reasoning_split",
    "reasoning_summary",
    "repeat_penalty",
    "repetition_penalty",
    "safety_settings",
    "shift",
    "strict_tools",
    "think",
    "thinking_budget",
    "thinking_level",
    "top_k",
    "transforms",
    "truncate",
}


def switch(on: object, off: object) -> Callable[[object], object]:
    """The wire form of a flag: one value for true, another for false, None to send nothing."""
    return lambda value: on if value is True else off


def admit(given: Mapping[str, object], fields: Mapping[str, Field], info: ModelInfo) -> dict[str, object]:
    """`given` without what the model refuses and what only other vendors take (a warning names it).

    An unknown or ill-typed one raises `ConfigError`.
    """
    foreign = {name for name in given if name not in fields and name in _ELSEWHERE}
    for name, value in given.items():
        if name not in foreign:
            _check(name, value, fields)
    refused = _refused(given, info)
    for name in sorted(refused):
        told = f"extension {name!r} was dropped: the model {info.id!r} refuses it"
        told += " while it thinks" if name in _SAMPLING and THINKS_UNSAMPLED in info.traits else ""
        warnings.warn(told, UserWarning, stacklevel=3)
    for name in sorted(foreign - refused):
        warnings.warn(
            f"extension {name!r} was dropped: the service of {info.id!r} has no such field", UserWarning, stacklevel=3
        )
    return {k: value for k, value in given.items() if k not in refused and k not in foreign and value is not None}


def wire_fields(admitted: Mapping[str, object], fields: Mapping[str, Field]) -> dict[str, object]:
    """The fields to send, `extra_body` last so that it has the last word."""
    sent: dict[str, object] = {}
    for name, value in admitted.items():
        field = fields[name]
        wired = value if field.wire is None else field.wire(value)
        if field.sent and wired is not None:
            _put(sent, field.at or (name,), wired)
    extra = admitted.get(EXTRA_BODY)
    if isinstance(extra, dict):
        sent = merged(sent, extra)
    return sent


def merged(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """`over` laid over `under`, dict by dict; what is no dict in both is replaced."""
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        result[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def at(given: Mapping[str, object], place: Sequence[str]) -> object:
    """What stands at this place, dict by dict; None for nothing."""
    value: object = given
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _put(body: dict[str, object], path: Sequence[str], value: object) -> None:
    nested: object = value
    for name in reversed(path[1:]):
        nested = {name: nested}
    body.update(merged(body, {path[0]: nested}))


def _check(name: str, value: object, fields: Mapping[str, Field]) -> None:
    field = fields.get(name)
    if field is None:
        raise ConfigError(_unknown(name, fields))
    if value is None:
        return
    if not _holds(field, value):
        raise ConfigError(f"extensions[{name!r}] must be {field.says}, not {type(value).__name__}")
    if field.words and value not in field.words:
        raise ConfigError(f"extensions[{name!r}] must be {field.says}, not {value!r}")
    if name == "max_output_tokens" and isinstance(value, int) and value < 1:
        raise ConfigError(f"extensions['max_output_tokens'] must be {field.says}, not {value}")
    if name == EXTRA_BODY and isinstance(value, dict) and (taken := _RESERVED.intersection(value)):
        raise ConfigError(f"extensions['extra_body'] may not hold {sorted(taken)[0]!r}: the runtime writes that itself")
    _check_json(name, value)


def _holds(field: Field, value: object) -> bool:
    if isinstance(value, bool):  # a bool is an int to Python, never to a model service
        return bool in field.types
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, field.types)


def _check_json(name: str, value: object) -> None:
    try:
        canonical(value)
    except (TypeError, ValueError, RecursionError) as fault:
        raise ConfigError(f"extensions[{name!r}] cannot be written as JSON: {fault}") from None


def _unknown(name: str, fields: Mapping[str, Field]) -> str:
    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.6)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown extension {name!r}{meant} Known: {', '.join(sorted(fields))}. Others go into extra_body."


def _refused(given: Mapping[str, object], info: ModelInfo) -> frozenset[str]:
    refused = info.refuses.intersection(name for name, value in given.items() if value is not None)
    unthinking = given.get("enable_thinking") is False and THINKS_UNSAMPLED in info.traits
    return refused - _SAMPLING if unthinking or given.get("reasoning_effort") == "none" else refused
