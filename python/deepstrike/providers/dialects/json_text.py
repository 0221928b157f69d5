"""JSON text for requests: compact, UTF-8, always strict."""

from __future__ import annotations

import msgspec

from deepstrike.text import well_formed

_encode = msgspec.json.Encoder().encode


def quote(text: str) -> bytes:
    """`text` as a JSON string. Lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return _encode(well_formed(text))


def canonical(value: object) -> bytes:
    """`value` as JSON whose keys are sorted. Raises TypeError for what JSON cannot hold."""
    return msgspec.json.encode(value, order="sorted")


def canonical_text(text: str) -> bytes:
    """JSON text (a tool's schema) with sorted keys, so that equal schemas give equal bytes."""
    return canonical(msgspec.json.decode(text))
