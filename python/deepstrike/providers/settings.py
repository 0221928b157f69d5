"""Values that users set, checked where they are given: a wrong one is told at once, with its name and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import TypeVar

from deepstrike.errors import ConfigError

COUNT_BELOW = 2**53
LONGEST_SECONDS = 1e9
"""Some thirty years: no clock or timer breaks on it."""

_MOST_SHOWN = 60
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

T = TypeVar("T")


def shown(value: object) -> str:
    """`value` for an error message: short, and also for numbers of more digits than Python writes out."""
    try:
        text = repr(value)
    except Exception:
        return f"this {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def check_names(owner: str, given: Collection[str], known: Collection[str]) -> None:
    """Raises `TypeError`, as for any call, if a keyword is none that `owner` has; it names the near miss."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            meant = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}"
            raise TypeError(f"{owner}() has no keyword {name!r}; {meant}")


def check_count(name: str, value: object, least: int, otherwise: str = "") -> None:
    """Raises `ConfigError` if it is no whole number from `least` to 2**53 - 1. `otherwise` ends the range's words."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < COUNT_BELOW:
        raise ConfigError(f"{name} must be a whole number from {least} to 2**53 - 1{otherwise}, not {shown(value)}")


def check_seconds(name: str, value: object, *, above_zero: bool = False, otherwise: str = "") -> None:
    """Raises `ConfigError` unless `value` is a finite number of seconds from 0 (or above it) to 1e9."""
    fits = not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= LONGEST_SECONDS
    if not fits or (above_zero and value == 0):
        least = "above 0, at most 1e9" if above_zero else "from 0 to 1e9"
        raise ConfigError(f"{name} must be a number of seconds {least}{otherwise}, not {shown(value)}")


def check_type(name: str, value: object, wanted: type[T], example: str) -> None:
    """Raises `ConfigError` unless `value` is None or a `wanted`."""
    if value is not None and not isinstance(value, wanted):
        raise ConfigError(f"{name} must be {example} or None, not {shown(value)}")


def check_model(model: object) -> None:
    """Raises `ConfigError` unless `model` could be the id of a model."""
    if not isinstance(model, str) or not model.strip() or not model.isprintable():
        raise ConfigError(f"model must be the id of a model, such as 'gpt-5-mini', not {shown(model)}")


def check_headers(headers: object) -> None:
    """Raises `ConfigError` unless these are names and values that can be sent. A value, perhaps secret, is not told."""
    if headers is None:
        return
    if not isinstance(headers, Mapping):
        raise ConfigError("headers must map names to values, as in headers={'x-team': 'blue'}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"headers must map names to values; {shown(name)} is no name that HTTP knows")
        if not isinstance(value, str) or not value.isprintable():
            raise ConfigError(f"headers must map names to values of one line each; {name!r} does not")


def is_host(host: str) -> bool:
    """Whether a name lookup would take it: labels of 1 to 63 characters, 253 in all, or an IP address."""
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return False
    return len(host) <= 253 and all(0 < len(label) < 64 for label in host.removesuffix(".").split("."))
