"""Taking back the nulls that stand for what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.tools.documents import Unreadable, read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deepstrike.tools.documents import Json

    Schema = Mapping[str, Json]


def without_absent(value: Json, root: Schema) -> Json:
    """`value` without the members that are null although their schema takes no null, where they are optional.

    In strict mode every property is required, so that a model can only say null for one that it leaves out. `root` is
    the schema of the value; references are followed inside it. The value nests as deep as the reader of JSON lets it.
    """
    return _pruned(value, [root], root)


def without_nulls(text: str, schema: str) -> str | None:
    """A JSON text without the members that `without_absent` leaves out; None where there are none, or it is no JSON."""
    try:
        value, root = read_document(text), read_document(schema)
        if not isinstance(root, dict) or (pruned := without_absent(value, root)) == value:
            return None
        return write_document(pruned)
    except (Unreadable, RecursionError):
        return None


def _pruned(value: Json, schemas: Sequence[Schema], root: Schema) -> Json:
    flat = _branches(schemas, root)
    if isinstance(value, dict):
        return {
            name: _pruned(member, _members(flat, name), root)
            for name, member in value.items()
            if member is not None or not _is_absent(flat, name, root)
        }
    if isinstance(value, list):
        items = [found for schema in flat if isinstance(found := schema.get("items"), dict)]
        return [_pruned(item, items, root) for item in value]
    return value


def _members(schemas: Sequence[Schema], name: str) -> list[Schema]:
    tables = [table for schema in schemas if isinstance(table := schema.get("properties"), dict)]
    return [found for table in tables if isinstance(found := table.get(name), dict)]


def _is_absent(schemas: Sequence[Schema], name: str, root: Schema) -> bool:
    """Whether a null under this name can only mean that it is left out."""
    known = _members(schemas, name)
    demanded = any(
        isinstance(required := schema.get("required"), list) and name in required and _members([schema], name)
        for schema in schemas
    )
    return bool(known) and not demanded and not any(_takes_null(each, root) for each in known)


def _takes_null(schema: Schema, root: Schema) -> bool:
    return any(map(_is_null, _branches([schema], root)))


def _is_null(schema: Schema) -> bool:
    kind, values = schema.get("type"), schema.get("enum")
    if isinstance(values, list):
        return None in values
    if "const" in schema:
        return schema["const"] is None
    if kind is None:
        return not schema.keys() & {"$ref", "anyOf", "oneOf", "allOf"}
    return "null" in (kind if isinstance(kind, list) else [kind])


def _branches(schemas: Sequence[Schema], root: Schema) -> list[Schema]:
    """The schemas and those that they stand for, by reference or as one of their choices; each of them once."""
    found: dict[int, Schema] = {}
    waiting = [*schemas]
    while waiting:
        here = waiting.pop()
        if id(here) not in found:
            found[id(here)] = here
            waiting += _meant(here, root)
    return list(found.values())


def _meant(schema: Schema, root: Schema) -> Iterator[Schema]:
    target = _target(schema.get("$ref"), root)
    if target is not None:
        yield target
    for word in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(word)
        if isinstance(choices, list):
            yield from (choice for choice in choices if isinstance(choice, dict))


def _target(reference: Json, root: Schema) -> Schema | None:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if reference == "#":
        return root
    at: Json = dict(root)
    for name in reference.removeprefix("#").removeprefix("/").split("/"):
        if name:
            at = at.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at if isinstance(at, dict) else None
