"""The JSON in a model's answer: alone, in a fence, or with words around it."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Final

from deepstrike.tools.arguments import needs_rewriting
from deepstrike.tools.documents import write_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.tools.documents import Json

_BLANK: Final = " \t\r\n\ufeff"
_FENCE: Final = "```"
_MOST_MISSES: Final = 200
"""So many brackets that open no JSON are looked at; each costs at most one pass over the text."""
_MOST_KEPT: Final = 20


def documents(text: str) -> Iterator[str]:
    """The JSON documents that `text` may mean, the likeliest first, as strict JSON text.

    The whole text if it is JSON, and nothing else then. Else what stands in fences, then the objects and arrays among
    the words; of each the last first, because models think aloud before they answer. A byte order mark is passed over,
    raw line breaks inside strings are escaped. The work is bounded: at most 200 passes, at most 20 documents.
    """
    body = text.strip(_BLANK)
    whole = _document(body)
    if whole is not None:
        yield whole
        return
    for fenced in reversed(_fenced(body)):
        document = _document(fenced)
        if document is not None:
            yield document
    yield from reversed(_embedded(body))


def _document(text: str) -> str | None:
    """The text as strict JSON, None if it is none."""
    found = _decoded(text, 0)
    if found is None or found[1] != len(text):
        return None
    return write_document(found[0]) if needs_rewriting(text) else text


def _fenced(text: str) -> list[str]:
    """What stands between fences, without the word behind the opening one."""
    inside = text.split(_FENCE, 2 * _MOST_KEPT)[1::2]
    return [block.partition("\n")[2].strip(_BLANK) for block in inside]


def _embedded(text: str) -> list[str]:
    """The objects and arrays among the words, in their order."""
    found: deque[str] = deque(maxlen=_MOST_KEPT)
    misses, at = 0, _opening(text, 0)
    while at >= 0 and misses < _MOST_MISSES:
        here = _decoded(text, at)
        if here is None:
            misses, at = misses + 1, _opening(text, at + 1)
            continue
        value, end = here
        piece = text[at:end]
        found.append(write_document(value) if needs_rewriting(piece) else piece)
        at = _opening(text, end)
    return list(found)


def _opening(text: str, start: int) -> int:
    places = [at for at in (text.find("{", start), text.find("[", start)) if at >= 0]
    return min(places, default=-1)


def _decoded(text: str, start: int) -> tuple[Json, int] | None:
    """The value that begins at `start`, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse, strict=False)
