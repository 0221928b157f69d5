"""A JSON schema put more plainly, for a service whose strict mode reads less of the language than others do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepstrike.providers.dialects.strict_form import NotStrict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.dialects.strict_form import Json

# A definition that names another one twice, and that another one twice, doubles with each step.
_MOST_PARTS: Final = 2_000
_LEFT_OUT: Final = frozenset({"$defs", "definitions", "title"})
_ABOUT: Final = frozenset({"default", "description", "examples"})
_TABLES: Final = ("$defs", "definitions")
_COMPOUND: Final = frozenset({"array", "object"})
_BEARS_ON: Final[dict[str, str]] = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "minProperties", "maxProperties"), "object"),
    **dict.fromkeys(("patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}


def plain_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The schema with its references written out, `const` as an `enum` of one, and a list of types that names objects
    or arrays as a choice; without titles. The given one is left as it is.

    Raises `NotStrict` for what then cannot be said: a schema that refers to itself, or grows beyond 2,000 parts, and an
    object without properties below the top.
    """
    return _Plain(schema).part(schema, frozenset())


class _Plain:
    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._parts = 0

    def part(self, schema: Mapping[str, Json], within: frozenset[str]) -> dict[str, Json]:
        """One schema, inside of what `within` refers to."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise NotStrict(f"it has more than {_MOST_PARTS:,} parts once its references are written out")
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in within:
                raise NotStrict("it refers to itself")
            return self.part(self._written_out(schema, reference), within | {reference})
        kinds = schema.get("type")
        if isinstance(kinds, list) and any(kind in _COMPOUND for kind in kinds):
            return self.part(_choice(schema, kinds), within)
        if schema.get("properties") == {} and self._parts > 1:
            raise NotStrict("it has an object without properties")
        made = {name: self._inner(name, value, within) for name, value in schema.items() if name not in _LEFT_OUT}
        if "const" in made:
            made["enum"] = [made.pop("const")]
        return made

    def _inner(self, name: str, value: Json, within: frozenset[str]) -> Json:
        if name == "properties" and isinstance(value, dict):
            return {key: self._any(each, within) for key, each in value.items()}
        if name in ("anyOf", "oneOf") and isinstance(value, list):
            return [self._any(each, within) for each in value]
        return self._any(value, within) if name == "items" else value

    def _any(self, value: Json, within: frozenset[str]) -> Json:
        return self.part(value, within) if isinstance(value, dict) else value

    def _written_out(self, schema: Mapping[str, Json], reference: str) -> dict[str, Json]:
        found: Json = None
        for table in _TABLES:
            defined, sign = self._root.get(table), f"#/{table}/"
            if isinstance(defined, dict) and reference.startswith(sign):
                found = defined.get(reference.removeprefix(sign).replace("~1", "/").replace("~0", "~"))
        if not isinstance(found, dict):
            raise NotStrict(f"it refers to {reference!r}")
        beside = {name: value for name, value in schema.items() if name != "$ref" and name not in _LEFT_OUT}
        for name in beside.keys() & found.keys() - _ABOUT:
            raise NotStrict(f"it has {name!r} beside a reference to what has it too")
        return {**found, **beside}


def _choice(schema: Mapping[str, Json], kinds: list[Json]) -> dict[str, Json]:
    """What has one of several types, as a choice of one schema for each."""
    for name in ("anyOf", "const", "enum", "oneOf"):
        if name in schema:
            raise NotStrict(f"it has {name!r} beside types of which one is an object or an array")
    about = {name: value for name, value in schema.items() if name in _ABOUT}
    rest = {name: value for name, value in schema.items() if name not in _ABOUT and name != "type"}
    choices: list[Json] = [{"type": kind, **{n: v for n, v in rest.items() if _bears(n, kind)}} for kind in kinds]
    return {"anyOf": choices, **about}


def _bears(name: str, kind: Json) -> bool:
    """Whether a keyword says something of values of a type; one that is not known may do so of all."""
    return _BEARS_ON.get(name, kind) == ("number" if kind == "integer" and name in _BEARS_ON else kind)
