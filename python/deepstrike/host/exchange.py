"""What a tool asks with and what it is answered, as JSON text: bounded, well formed, and readable by the kernel."""

from __future__ import annotations

import json
from typing import Final

from deepstrike.errors import ConfigError
from deepstrike.text import well_formed
from deepstrike.tools.results import as_json

MAX_BYTES: Final = 1024 * 1024
"""At most so many bytes of JSON are one question or one answer."""

MAX_DEPTH: Final = 100
"""At most so deep it nests; the kernel's reader refuses more than 128 levels."""


def question_text(payload: object) -> str:
    """A question's payload as it is recorded; what JSON cannot hold is told as text, as in a tool's result.

    Raises `ValueError` for what nests deeper than 100 levels or is larger than 1 MiB.
    """
    return _bounded("the payload of Suspend(…)", as_json(payload))


def answer_text(answer: object) -> str:
    """An answer as it is recorded, and as the tool gets it back.

    Raises `ConfigError` for what JSON cannot hold, nests deeper than 100 levels or is larger than 1 MiB.
    """
    try:
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return _bounded("an answer", well_formed(text))
    except RecursionError as error:
        raise ConfigError(f"an answer nests deeper than {MAX_DEPTH} levels; flatten it") from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"an answer must be a value that JSON can hold: {error}") from error


def _bounded(what: str, text: str) -> str:
    if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
        raise ValueError(f"{what} is larger than {MAX_BYTES} bytes; put it in a file and pass its name")
    if _depth(json.loads(text)) > MAX_DEPTH:
        raise ValueError(f"{what} nests deeper than {MAX_DEPTH} levels; flatten it")
    return text


def _depth(value: object) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            member
            for each in level
            if isinstance(each, dict | list)
            for member in (each.values() if isinstance(each, dict) else each)
        ]
    return deepest
