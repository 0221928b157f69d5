"""A JSON schema in the form that the service takes for structured answers.

It wants every object closed and refuses limits on numbers, lengths and counts, most formats, and `oneOf` (vendor's page
on structured outputs). Limits and formats move into the description, where the model reads them; `oneOf` is sent as
`anyOf`. The answer is checked against the full schema anyway. An object with free names can only come back empty.
"""

from __future__ import annotations

from typing import Final

import msgspec

_REFUSED: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
)
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_RENAMED: Final = {"oneOf": "anyOf"}
# Under these a name is a property or a definition, not a keyword.
_BY_NAME: Final = ("properties", "$defs", "definitions")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "not")


def accepted_schema(text: str) -> dict[str, object]:
    """The schema in `text` without what the service refuses. Raises `msgspec.DecodeError` if it is no JSON object."""
    return _accepted(msgspec.json.decode(text, type=dict[str, object]))


def _accepted(schema: dict[str, object]) -> dict[str, object]:
    taken = {name: value for name, value in schema.items() if not _is_refused(name, value)}
    kept = {_RENAMED.get(name, name): _inner(name, value) for name, value in taken.items()}
    moved = {name: value for name, value in schema.items() if _is_refused(name, value)}
    if kept.get("type") == "object" or "properties" in kept:
        kept["additionalProperties"] = False
    if moved:
        limits = msgspec.json.encode(moved, order="sorted").decode()
        told = kept.get("description")
        kept["description"] = f"{told} {limits}" if isinstance(told, str) and told else limits
    return kept


def _is_refused(name: str, value: object) -> bool:
    if name == "format":
        return value not in _FORMATS
    return name in _REFUSED or (name == "minItems" and value not in (0, 1))


def _inner(name: str, value: object) -> object:
    if name in _BY_NAME and isinstance(value, dict):
        return {inner: _maybe(schema) for inner, schema in value.items()}
    if name in _LISTS and isinstance(value, list):
        return [_maybe(schema) for schema in value]
    return _maybe(value) if name in _SINGLE else value


def _maybe(value: object) -> object:
    return _accepted(value) if isinstance(value, dict) else value
