"""From resolved parameters to JSON schema text and a compiled validator, through pydantic.

Importing this module imports pydantic: it is itself imported when a tool's schema is first asked for.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python
from typing_extensions import NotRequired, TypedDict

from deepstrike.errors import ConfigError
from deepstrike.tools.signature import NO_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic_core import SchemaSerializer, SchemaValidator

    from deepstrike.tools.signature import Parameter

_FLAT_TYPES: Final = frozenset(
    {"typed-dict", "typed-dict-field", "int", "str", "bool", "float", "nullable", "none", "literal", "list", "enum"}
)
_CHANGING_TYPES: Final = frozenset(
    {"function-before", "function-after", "function-wrap", "function-plain", "json", "call", "str-changing"}
)
_NOT_SCHEMA: Final = frozenset({"metadata", "default", "serialization", "ref", "cls"})
_NAMED_SCHEMAS: Final = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_VALUES: Final = frozenset({"default", "const", "enum", "examples", "required"})
_NO_DEFAULTS: Final = (None, Ellipsis, NO_DEFAULT, PydanticUndefined)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A signature made checkable.

    `flat` says that only scalars and lists of them occur, whose JSON every reader reads alike; `changing` that a
    validator may turn a value that is valid already into another one. `defaults` makes the values of parameters that
    are left out; `fill` are those of them that the function does not know by itself, as they are given as `Field(…)`.
    """

    text: str
    validator: SchemaValidator
    serializer: SchemaSerializer
    flat: bool
    changing: bool
    defaults: Mapping[str, Callable[[], object]]
    fill: Mapping[str, Callable[[], object]]


def compile_schema(name: str, parameters: Sequence[Parameter], described: Mapping[str, str]) -> Compiled:
    """Build schema and validator. Raises `ConfigError` naming the parameter whose type has no JSON form."""
    fields: dict[str, object] = {}
    fill: dict[str, Callable[[], object]] = {}
    defaults: dict[str, Callable[[], object]] = {}
    for each in parameters:
        fields[each.name], default = _field(each, described.get(each.name))
        if default is not None:
            fill[each.name] = defaults[each.name] = default
        elif not isinstance(each.default, FieldInfo) and each.default is not None and each.default is not NO_DEFAULT:
            defaults[each.name] = partial(_itself, each.default)
    adapter = _adapter(name, fields)
    types = frozenset(_node_types(adapter.core_schema))
    return Compiled(
        text=_schema_text(name, adapter, parameters),
        validator=adapter.validator,  # type: ignore[arg-type]  # the plugin wrapper has the same methods
        serializer=adapter.serializer,
        flat=types <= _FLAT_TYPES,
        changing=not types.isdisjoint(_CHANGING_TYPES),
        defaults=defaults,
        fill=fill,
    )


def _adapter(name: str, fields: Mapping[str, object]) -> TypeAdapter[dict[str, object]]:
    try:
        return _typed_dict_adapter(fields)
    except (PydanticUserError, TypeError, NameError) as whole:
        for field, annotation in fields.items():
            _check_type(name, field, annotation)
        raise ConfigError(f"tool {name!r}: no schema can be made of its parameters: {_first_line(whole)}") from whole


def _check_type(name: str, field: str, annotation: object) -> None:
    try:
        _typed_dict_adapter({field: annotation})
    except (PydanticUserError, TypeError, NameError) as error:
        raise ConfigError(
            f"tool {name!r}: the type of parameter {field!r} has no JSON form ({_first_line(error)}); annotate it with "
            "a type that pydantic knows, or give parameters="
        ) from error


def _typed_dict_adapter(fields: Mapping[str, object]) -> TypeAdapter[dict[str, object]]:
    make: Any = TypedDict  # the fields are known at run time only
    shape: Any = make("Arguments", dict(fields))
    shape.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    return TypeAdapter(shape)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _field(parameter: Parameter, described: str | None) -> tuple[object, Callable[[], object] | None]:
    """The annotation for the typed dict, and the maker of a default that stands inside a `Field(…)`."""
    annotation: Any = parameter.annotation
    default = parameter.default
    make: Callable[[], object] | None = None
    required = default is NO_DEFAULT
    if isinstance(default, FieldInfo):
        make = _default_maker(default)
        required = make is None
        annotation = Annotated[annotation, _without_default(default)]
    elif default is None:
        annotation = Optional[annotation]  # noqa: UP045  (`x: str = None` takes None, on every version alike)
    text = _own_text(annotation) or described
    if text is not None:
        annotation = Annotated[annotation, Field(description=text)]
    return (annotation if required else NotRequired[annotation]), make


def _itself(value: object) -> object:
    return value


def _default_maker(info: FieldInfo) -> Callable[[], object] | None:
    if info.default_factory is not None:
        factory: Any = info.default_factory
        return lambda: factory()
    if info.default is PydanticUndefined or info.default is Ellipsis:
        return None
    value = info.default
    return lambda: copy.deepcopy(value)


def _without_default(info: FieldInfo) -> FieldInfo:
    bare = copy.copy(info)
    bare.default = PydanticUndefined
    bare.default_factory = None
    bare._attributes_set = {
        key: value for key, value in info._attributes_set.items() if key not in ("default", "default_factory")
    }
    return bare


def _own_text(annotation: object) -> str | None:
    """What `Annotated` itself says: a `Field` description or a bare string."""
    found: str | None = None
    for note in getattr(annotation, "__metadata__", ()):
        if isinstance(note, str):
            found = note
        elif isinstance(note, FieldInfo) and note.description:
            found = note.description
    return found


def _node_types(node: object) -> Iterator[str]:
    """The kinds of validators in a core schema, with words of our own for kinds that need care."""
    if isinstance(node, dict):
        kind = node.get("type")
        if isinstance(kind, str):
            yield kind
            yield from _marks(kind, node)
        for key, value in node.items():
            if key not in _NOT_SCHEMA:
                yield from _node_types(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _node_types(value)


def _marks(kind: str, node: Mapping[str, object]) -> Iterator[str]:
    if kind == "str" and any(node.get(key) for key in ("strip_whitespace", "to_lower", "to_upper")):
        yield "str-changing"
    if kind == "list" and "items_schema" not in node:
        yield "any"
    if kind == "float" and node.get("allow_inf_nan"):
        yield "any"
    if kind == "enum" and "missing" in node:
        yield "function-plain"


def _schema_text(name: str, adapter: TypeAdapter[dict[str, object]], parameters: Sequence[Parameter]) -> str:
    try:
        schema = adapter.json_schema()
    except PydanticUserError as error:
        raise ConfigError(
            f"tool {name!r}: no JSON schema can be made of its parameters: {_first_line(error)}"
        ) from error
    schema.setdefault("properties", {})
    _add_defaults(schema["properties"], parameters)
    plain = _inlined(_untitled(schema))
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _add_defaults(properties: dict[str, Any], parameters: Sequence[Parameter]) -> None:
    for each in parameters:
        info = each.default if isinstance(each.default, FieldInfo) else None
        default = info.default if info else each.default
        name = info.alias if info and info.alias else each.name
        if name not in properties or any(default is nothing for nothing in _NO_DEFAULTS):
            continue
        try:
            shown = to_jsonable_python(default, inf_nan_mode="null")
        except ValueError:
            continue  # a default without a JSON form is the function's own affair
        properties[name] = dict(sorted({**properties[name], "default": shown}.items()))


def _untitled(schema: object) -> Any:
    """Drop pydantic's titles: they repeat the names. Keys that are parameter names stay."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in _NAMED_SCHEMAS and isinstance(value, dict):
            kept[key] = {name: _untitled(each) for name, each in value.items()}
        else:
            kept[key] = value if key in _VALUES else _untitled(value)
    return kept


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Put definitions that are used once, or have no fields (enums), where they are used: some hosts read no `$ref`."""
    definitions: dict[str, Any] = schema.pop("$defs", {})
    text = json.dumps([schema, definitions])
    direct = {
        name: body
        for name, body in definitions.items()
        if f'"#/$defs/{name}"' not in json.dumps(body)
        and ("properties" not in body or text.count(f'"#/$defs/{name}"') == 1)
    }
    result: dict[str, Any] = _replaced(schema, direct)
    rest = {name: _replaced(body, direct) for name, body in definitions.items() if name not in direct}
    return {"$defs": rest, **result} if rest else result


def _replaced(node: Any, direct: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_replaced(item, direct) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    body = direct.get(reference.removeprefix("#/$defs/")) if isinstance(reference, str) else None
    if body is None:
        return {key: value if key in _VALUES else _replaced(value, direct) for key, value in node.items()}
    siblings = {key: value for key, value in node.items() if key != "$ref"}
    merged: dict[str, Any] = _replaced({**body, **siblings}, direct)
    return dict(sorted(merged.items()))
