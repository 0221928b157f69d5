"""A JSON schema made into one that strict mode takes, where that can be done without losing an answer.

Objects are closed, every property is required, and one that is optional may be null instead; whoever reads the answer
takes such a null for "left out" and checks it against the schema as it was. What strict mode refuses and only narrows
values stands in the description, where the model reads it. Source: the vendor's guide to structured outputs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

from deepstrike.providers.dialects.strict import USUAL, is_strict
from deepstrike.text import well_formed_json
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.base import Memo, OutputSchema
    from deepstrike.providers.dialects.strict import StrictRules

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_KEPT: Final = frozenset(
    {
        "$ref",
        "additionalProperties",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "title",
        "type",
    }
)
_TOLD: Final = frozenset(
    {"format", "maxLength", "maxProperties", "minLength", "minProperties", "propertyNames", "uniqueItems"}
)
_SILENT: Final = frozenset(
    {"$comment", "$id", "$schema", "default", "deprecated", "discriminator", "examples", "readOnly", "writeOnly"}
)
_TABLES: Final = frozenset({"properties", "$defs", "definitions"})
_REFERENCES: Final = ("#/$defs/", "#/definitions/")
_CHOICES: Final = {"anyOf": "anyOf", "oneOf": "anyOf"}
_NULL: Final[Json] = {"type": "null"}


class NotStrict(ValueError):
    """Strict mode cannot say this; the message says what."""


def sent_schema(output: OutputSchema, memo: Memo) -> tuple[bytes, bool]:
    """The schema as it is sent, and whether in strict mode; a notice says why not. The order of its names stays, for
    the model writes its answer in it.
    """
    try:
        read: Json = json.loads(output.schema)
        made = strict_form(read if isinstance(read, dict) else {})
    except (NotStrict, RecursionError) as reason:
        told = str(reason) if isinstance(reason, NotStrict) else "it nests too deep"
        memo.notices.append(Notice("loose_schema", f"the form of the answer is not sent in strict mode: {told}"))
        return well_formed_json(output.schema).encode(), False
    return well_formed_json(json.dumps(made, ensure_ascii=False, separators=(",", ":"))).encode(), True


def strict_form(schema: Mapping[str, Json], rules: StrictRules = USUAL) -> dict[str, Json]:
    """The schema for strict mode, by the service's `rules`; the given one is left as it is.

    Raises `NotStrict` for what that mode cannot say: objects with free names, values of any type, tuples, combinations
    such as `allOf` and `not`, references to anything but definitions.
    """
    made = _made(schema, rules)
    if not is_strict(made):
        raise NotStrict("it is not an object throughout")
    return made


def _made(schema: Mapping[str, Json], rules: StrictRules) -> dict[str, Json]:
    kept: dict[str, Json] = {}
    told: dict[str, Json] = {}
    for name, value in schema.items():
        if name in rules.told or (name in _TOLD and not (name == "format" and value in rules.formats)):
            told[name] = value
        elif name not in _SILENT:
            if _CHOICES.get(name, name) in kept:
                raise NotStrict("it has 'anyOf' beside 'oneOf'")
            kept[_CHOICES.get(name, name)] = _inner(name, value, rules)
    _close(schema, kept)
    if told:
        limits = json.dumps(told, ensure_ascii=False)
        said = kept.get("description")
        kept["description"] = f"{said} {limits}" if isinstance(said, str) and said else limits
    return _typed(kept)


def _inner(name: str, value: Json, rules: StrictRules) -> Json:
    if name in _TABLES and isinstance(value, dict):
        return {key: _schema(each, rules) for key, each in value.items()}
    if name in _CHOICES and isinstance(value, list):
        return [_schema(each, rules) for each in value]
    if name == "items":
        return _schema(value, rules)
    if name == "$ref" and not (isinstance(value, str) and value.startswith(_REFERENCES)):
        raise NotStrict(f"it refers to {value!r}")
    if name in _KEPT or name == "format":
        return value
    raise NotStrict(f"it has {name!r}")


def _schema(value: Json, rules: StrictRules) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise NotStrict("it has values of any type")
    return _made(value, rules)


def _close(schema: Mapping[str, Json], kept: dict[str, Json]) -> None:
    """Of an object: no other names, and every one required."""
    properties = kept.get("properties")
    if properties is None and "object" not in _types(schema):
        return
    if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
        raise NotStrict("it has an object with free names")
    asked = schema.get("required")
    required = asked if isinstance(asked, list) else []
    kept["type"] = schema.get("type", "object")
    kept["properties"] = {name: each if name in required else _nullable(each) for name, each in properties.items()}
    kept["required"] = list(properties)
    kept["additionalProperties"] = False


def _nullable(schema: Json) -> Json:
    if not isinstance(schema, dict) or _takes_null(schema):
        return schema
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        return {**schema, "anyOf": [*choices, _NULL]}
    return {"anyOf": [schema, _NULL]}


def _takes_null(schema: Mapping[str, Json]) -> bool:
    choices, values = schema.get("anyOf"), schema.get("enum")
    if isinstance(choices, list):
        return any(isinstance(each, dict) and _takes_null(each) for each in choices)
    if isinstance(values, list):
        return None in values
    return "null" in _types(schema)


def _typed(kept: dict[str, Json]) -> dict[str, Json]:
    """A reference stands alone in strict mode, and everything else says its type."""
    if "$ref" in kept:
        reference: Json = {"$ref": kept["$ref"]}
        beside = {name: value for name, value in kept.items() if name in ("description", "$defs", "definitions")}
        return {"anyOf": [reference], **beside} if beside else {"$ref": kept["$ref"]}
    if "type" in kept or "anyOf" in kept:
        return kept
    values = kept.get("enum", [kept["const"]] if "const" in kept else None)
    if not isinstance(values, list) or not values:
        raise NotStrict("it has values of any type")
    kinds: list[Json] = [*sorted({_type_of(value) for value in values})]
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **kept}


def _types(schema: Mapping[str, Json]) -> list[Json]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
