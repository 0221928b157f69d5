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
        "additionalProperties",
        "contains",
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
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset(
    {
        "$defs",
        "definitions",
        "dependentSchemas",
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
_UNCHECKED: Final = {
    "additionalItems": "draft 2020-12 has `items` for it, behind `prefixItems`",
    "contentEncoding": "say it as a `pattern`",
    "contentMediaType": "say it as a `pattern`",
    "contentSchema": "give the argument a schema of its own",
    "dependencies": "draft 2020-12 has `dependentRequired` and `dependentSchemas` for it",
    "format": "say it as a `pattern`",
}
_DRAFTS: Final = ("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#")
# A word that does nothing without another one.
_WITH: Final = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
_KNOWN: Final = sorted(_ONE | _LISTS | _NAMED | _PLAIN)


def require_known_words(schema: object) -> None:
    """Raises `ConfigError` for what would constrain nothing.

    That is a word that JSON schema (draft 2020-12) does not have, unless it begins with `x-`; one that is not checked,
    such as `format`; one that stands without the word it belongs to; another draft, whose words mean other things.
    """
    for part in _parts(schema):
        for word in part:
            _require(word)
            if word in _WITH and _WITH[word] not in part:
                raise ConfigError(f"a schema's `{word}` constrains nothing without `{_WITH[word]}` beside it")
        if "if" in part and not {"then", "else"} & set(part):
            raise ConfigError("a schema's `if` constrains nothing without `then` or `else` beside it")
        draft = part.get("$schema", _DRAFTS[0])
        if draft not in _DRAFTS:
            raise ConfigError(f"$schema must be {_DRAFTS[0]!r}, or be left out, not {draft!r:.200}")


def _require(word: str) -> None:
    if word in _UNCHECKED:
        raise ConfigError(f"a schema's `{word}` is not checked, so it would constrain nothing: {_UNCHECKED[word]}")
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
