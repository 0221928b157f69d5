"""Reading the JSON that a model wrote: strict where readers could differ, bounded everywhere."""

from __future__ import annotations

import json
import math
import re
from typing import Final, TypeAlias

from deepstrike.text import well_formed

MAX_DEPTH: Final = 100
"""Levels of nesting. The kernel's reader stops at 128 and pydantic's at 200."""

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

# A string may be cut off at the end of the text; without that alternative the search would be quadratic.
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class Unreadable(ValueError):
    """The text is no JSON that every reader reads alike; the message says where and why."""


def read_document(text: str) -> Json:
    """Parse JSON text. Raises `Unreadable` for broken text, duplicate keys, NaN, infinities and deep nesting.

    Raw control characters inside strings are let through: models write them, and the value is clear.
    """
    _check_depth(text)
    try:
        document: Json = _DECODER.decode(text)
    except Unreadable:
        raise
    except RecursionError as error:
        raise Unreadable(_too_deep()) from error
    except ValueError as error:
        raise Unreadable(f"not valid JSON: {_plain(error)}") from error
    return document


def write_document(document: Json) -> str:
    """Compact JSON text with lone surrogates replaced."""
    return well_formed(json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def without_lone_surrogates(document: Json) -> Json:
    """The same document with every lone surrogate replaced; the depth is known to be bounded."""
    if isinstance(document, str):
        return well_formed(document)
    if isinstance(document, list):
        return [without_lone_surrogates(item) for item in document]
    if isinstance(document, dict):
        return {well_formed(key): without_lone_surrogates(value) for key, value in document.items()}
    return document


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        match bracket[0][0]:
            case "[" | "{":
                depth += 1
                if depth > MAX_DEPTH:
                    raise Unreadable(_too_deep())
            case "]" | "}":
                depth -= 1


def _too_deep() -> str:
    return f"nested deeper than {MAX_DEPTH} levels"


def _plain(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return "a number has too many digits" if "digits" in str(error) else str(error)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Unreadable(f"the key {double!r} stands twice in one object")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Unreadable(f"the number {text[:40]} is out of range")
    return number


def _constant(word: str) -> float:
    raise Unreadable(f"{word} is not valid JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_constant, strict=False)
