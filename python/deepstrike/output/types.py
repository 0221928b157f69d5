"""Types as forms, through pydantic. Importing this module imports pydantic."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from deepstrike.errors import ConfigError
from deepstrike.output.shape import VALUE, Misfit, Shape, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

    from deepstrike.tools.documents import Json

_MOST_COMPLAINTS: Final = 8
_MOST_SIGNS: Final = 60
_REMEDY: Final = "give a pydantic model, a dataclass, a TypedDict, a type such as list[int], or a JSON schema as a dict"


def shape_of_type(output_type: object) -> Shape:
    """The shape of a type. Raises `ConfigError` for what is no type, or one without a JSON form."""
    _require_type(output_type)
    try:
        adapter = _adapter(output_type)
        schema = _rooted(adapter.json_schema(schema_generator=_Untitled))
        if schema.get("type") == "object":
            return Shape(_name(output_type), schema, False, lambda document: _read(adapter, document, 0))
        whole = _wrapping(output_type)
        schema = _rooted(whole.json_schema(schema_generator=_Untitled))
    except (PydanticUserError, TypeError, NameError) as error:
        said = str(error).partition("\n")[0]
        raise ConfigError(f"output_type: {output_type!r} has no JSON form ({said}); {_REMEDY}") from error
    return wrapped(
        schema, lambda document: _read(whole, document, 1)[VALUE], lambda document: _read(adapter, document, 0)
    )


class _Untitled(GenerateJsonSchema):
    """Without the titles of fields, which repeat their names."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def _require_type(output_type: object) -> None:
    if isinstance(output_type, str):
        raise ConfigError(f"output_type: {output_type!r} is a text, not a type; {_REMEDY}")
    if inspect.isroutine(output_type):
        raise ConfigError(f"output_type: {output_type.__name__} is a function, not a type; {_REMEDY}")
    made = isinstance(output_type, BaseModel) or dataclasses.is_dataclass(output_type)
    if made and not isinstance(output_type, type):
        kind = type(output_type).__name__
        raise ConfigError(f"output_type: give the class {kind} itself, not an object of it")


def _adapter(output_type: Any) -> TypeAdapter[object]:
    return TypeAdapter(output_type)


def _name(output_type: object) -> str:
    return output_type.__name__ if isinstance(output_type, type) else "answer"


def _wrapping(output_type: object) -> TypeAdapter[dict[str, object]]:
    make: Any = TypedDict  # the type is known at run time only
    return TypeAdapter(make("Answer", {VALUE: output_type}))


def _rooted(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema with its root in place: a type that refers to itself is only referred to at the root."""
    reference, definitions = schema.get("$ref"), schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return schema
    root = definitions.get(reference.removeprefix("#/$defs/"))
    return {**root, "$defs": definitions} if isinstance(root, dict) else schema


def _read(adapter: TypeAdapter[Any], document: str, skip: int) -> Any:
    """`skip` leading places of a complaint are our own."""
    try:
        return adapter.validate_json(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        raise Misfit(_complaint(found, skip)) from error
    except Exception as error:  # a validator of the user's own
        raise Misfit(f"it cannot be checked: {type(error).__name__}: {error}") from error


def _complaint(errors: Sequence[ErrorDetails], skip: int) -> str:
    shown = "; ".join(_one(each, skip) for each in errors[:_MOST_COMPLAINTS])
    more = len(errors) - _MOST_COMPLAINTS
    return f"{shown}; and {more} more" if more > 0 else shown


def _one(error: ErrorDetails, skip: int) -> str:
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error["loc"][skip:]).lstrip(".")
    return f"{place}: {_reason(error)}" if place else _reason(error)


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "missing, but required"
        case "extra_forbidden":
            return "unexpected, there is no such field"
        case "value_error" | "assertion_error":
            return error["msg"].partition(", ")[2]
    said = error["msg"].replace("Input should be", "should be")
    given = error["input"]
    shown = repr(given) if isinstance(given, str | int | float | bool | None) else type(given).__name__
    return f"{said}, not {shown if len(shown) <= _MOST_SIGNS else shown[:_MOST_SIGNS] + '…'}"
