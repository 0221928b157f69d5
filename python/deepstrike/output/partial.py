"""What can be read of JSON that is still being written."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Final

from pydantic_core import from_json

_MOST_MISSES: Final = 200
"""So many brackets that open no JSON are looked at; each costs at most one pass over the text."""

_NUMBERS: Final = "0123456789.eE+-"
_DIGITS: Final = frozenset("0123456789")
# The last alternative is a string that is not closed yet; without it the search would be quadratic.
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("|\\?\Z)', re.DOTALL)
_OPENING: Final = re.compile(r"[{\[]")


def partial_json(text: str) -> object | None:
    """The object or array that a model is writing, as far as it can be read; None if it has not begun one.

    Members and items are there once they have begun to say something: a string may be cut, a number, `true`, `false`
    and `null` are there only when they are whole. Words and fences before it are passed over; of several documents it
    is the last. A whole text gives the whole value. Reads the text anew on every call: at most 200 passes, commonly one
    or two.
    """
    found: object | None = None
    misses, at = 0, _opening(text, 0)
    while at is not None and misses < _MOST_MISSES:
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            unfinished = _unfinished(text[at:])
            if unfinished is not None:
                return unfinished
            misses, end = misses + 1, at + 1
        at = _opening(text, end)
    return found


def _opening(text: str, start: int) -> int | None:
    found = _OPENING.search(text, start)
    return None if found is None else found.start()


def _unfinished(text: str) -> object | None:
    value = _begun(text)
    whole = text.rstrip(_NUMBERS)
    if value is None or text[len(whole) :].lstrip("-")[:1] not in _DIGITS or _ends_in_string(text):
        return value
    return _begun(whole)  # more digits may follow


def _begun(text: str) -> object | None:
    try:
        value: object = from_json(text, allow_inf_nan=False, allow_partial="trailing-strings")
    except ValueError:
        return None
    return value


def _ends_in_string(text: str) -> bool:
    last = deque(_STRING.finditer(text), maxlen=1)
    return bool(last) and last[0][1] != '"'


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse, strict=False)
