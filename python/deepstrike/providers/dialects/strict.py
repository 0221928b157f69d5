"""What strict mode takes of a JSON schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

# What the service names as not supported in strict mode (its guide to structured outputs).
_UNSUPPORTED: Final = frozenset(
    {"allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "oneOf", "patternProperties"}
)
_TABLES: Final = ("properties", "$defs", "definitions")
_FORMATS: Final = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})


@dataclass(frozen=True, slots=True)
class StrictRules:
    """How one service's strict mode differs from the usual.

    `formats` of text that it knows. `told` are further keywords that it refuses and that only narrow values: they go
    into the description. With `plain` it has to be put more plainly too (`plain_schema`). With `whole` the tools of a
    request are all strict, or none is.
    """

    formats: frozenset[str] = _FORMATS
    told: frozenset[str] = frozenset()
    plain: bool = False
    whole: bool = False


USUAL: Final = StrictRules()


def is_strict(schema: object) -> bool:
    """It is an object; every object in it, at any depth, lists all its properties as required and takes no others."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    return all(map(_fits, _objects(schema)))


def _fits(schema: Mapping[object, object]) -> bool:
    if _UNSUPPORTED.intersection(name for name in schema if isinstance(name, str)):
        return False
    properties, kind = schema.get("properties"), schema.get("type")
    if properties is None and "object" not in (kind if isinstance(kind, list) else [kind]):
        return True
    names = set(properties) if isinstance(properties, Mapping) else set()
    required = schema.get("required", [])
    return schema.get("additionalProperties") is False and isinstance(required, list) and names == set(required)


def _objects(schema: Mapping[object, object]) -> Iterator[Mapping[object, object]]:
    """The schema and every schema inside it."""
    yield schema
    inner: list[object] = [schema.get("items")]
    for name in _TABLES:
        table = schema.get(name)
        if isinstance(table, Mapping):
            inner.extend(table.values())
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        inner.extend(choices)
    for one in inner:
        if isinstance(one, Mapping):
            yield from _objects(one)
