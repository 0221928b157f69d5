"""JSON schemas as forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.kernel import validate
from deepstrike.output.shape import VALUE, Misfit, Shape, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.tools.documents import Json

_MOST_COMPLAINTS: Final = 8
_DEFINITIONS: Final = ("$defs", "definitions")
_DEFINED: Final = tuple(f"#/{name}/" for name in _DEFINITIONS)
# Under these stand values, not schemas.
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})


def shape_of_schema(schema: Mapping[object, object]) -> Shape:
    """The shape of a JSON schema; the caller's dict is copied. Raises `ConfigError` for what is no JSON schema."""
    try:
        text = json.dumps(dict(schema), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        own: dict[str, Json] = json.loads(text)
        validate(text, "null")
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"output_type is a dict, so it must be a JSON schema: {error}") from None
    title = own.get("title")
    name = title if isinstance(title, str) else "answer"
    kind = own.get("type")
    if kind == "object" or (kind is None and "properties" in own):
        return Shape(name, {**own, "type": "object"}, False, lambda document: _read(text, document))
    wrapper = _wrapped(own)
    whole = json.dumps(wrapper, ensure_ascii=False, separators=(",", ":"))
    return wrapped(wrapper, lambda document: _member(_read(whole, document)), lambda document: _read(text, document))


def _wrapped(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema as one member of an object. Its definitions stay at the root, other references follow it inside."""
    kept = {name: value for name, value in schema.items() if name in _DEFINITIONS}
    inner = {name: value for name, value in schema.items() if name not in kept}
    whole: dict[str, Json] = {
        "type": "object",
        "properties": {VALUE: inner},
        "required": [VALUE],
        "additionalProperties": False,
        **kept,
    }
    return {name: _moved(value, f"#/properties/{VALUE}") for name, value in whole.items()}


def _moved(node: Json, to: str) -> Json:
    if isinstance(node, list):
        return [_moved(item, to) for item in node]
    if not isinstance(node, dict):
        return node
    moved: dict[str, Json] = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str) and value.startswith("#") and not value.startswith(_DEFINED):
            moved[key] = to + value[1:]
        else:
            moved[key] = value if key in _VALUES else _moved(value, to)
    return moved


def _member(document: object) -> object:
    return document[VALUE] if isinstance(document, dict) else document


def _read(schema: str, document: str) -> object:
    try:
        complaints = validate(schema, document)
    except ValueError as error:
        raise Misfit(f"it cannot be checked: {error}") from error
    if complaints:
        more = len(complaints) - _MOST_COMPLAINTS
        shown = "; ".join(complaints[:_MOST_COMPLAINTS])
        raise Misfit(f"{shown}; and {more} more" if more > 0 else shown)
    value: object = json.loads(document)
    return value
