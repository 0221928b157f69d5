"""The words of a constraint's schema: one that is misspelt, or that is not checked, would constrain nothing."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ONE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LISTS: Final = frozenset(
    {
        "allOf",
        "anyOf",
        "oneOf",
        "prefixItems",
        "items",
    }
)
_NAMED: Final = frozenset(
    {
        "$defs",
        "definitions",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
        "properties",
    }
)
_PLAIN: Final = frozenset(
    {
        "$anchor",
        "$comment",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$ref",
        "$schema",
        "$vocabulary",
        "const",
        "contentEncoding",
        "contentMediaType",
        "default",
        "dependentRequired",
        "deprecated",
        "description",
        "enum",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "readOnly",
        "required",
        "title",
        "type",
        "uniqueItems",
        "writeOnly",
    }
)
_KNOWN: Final = sorted(_ONE | _LISTS | _NAMED | _PLAIN)


def require_known_words(schema: object) -> None:
    """Raises `ConfigError` for a word that JSON schema (draft 2020-12) does not have, unless it begins with `x-`, and
    for `format`, which is not checked.
    """
    for part in _parts(schema):
        for word in part:
            _require(word)


def _require(word: str) -> None:
    if word == "format":
        raise ConfigError("a schema's `format` is not checked, so it would constrain nothing: say it as a `pattern`")
    if word in _KNOWN or word.startswith("x-"):
        return
    near = difflib.get_close_matches(word, _KNOWN, n=1)
    meant = f"did you mean {near[0]!r}?" if near else "words of your own begin with 'x-'"
    raise ConfigError(f"unknown word {word!r} in the schema; {meant}")


def _parts(schema: object) -> Iterator[Mapping[str, object]]:
    """The schema and all the schemas in it."""
    left = [schema]
    while left:
        part = left.pop()
        if not isinstance(part, Mapping):
            continue  # true, false, or what the schema check objects to
        yield part
        for word, value in part.items():
            if word in _NAMED and isinstance(value, Mapping):
                left.extend(value.values())
            elif word in _LISTS and isinstance(value, list | tuple):
                left.extend(value)
            elif word in _ONE:
                left.append(value)
