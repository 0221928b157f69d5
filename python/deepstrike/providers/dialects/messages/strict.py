"""Tools in strict mode, within what the service takes of them in one request (vendor's page on structured outputs)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from deepstrike.providers.dialects.json_text import canonical
from deepstrike.providers.dialects.messages.schema import accepted_schema
from deepstrike.providers.dialects.strict_tools import say_loose, strict_schema, wants_strict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.providers.base import ModelRequest

_MOST: Final = {"strict tools": 20, "optional parameters": 24, "parameters of several types": 16}
"""In all schemas of one request together, that of a structured answer among them."""
_TABLES: Final = ("properties", "$defs", "definitions")
_REFERENCES: Final = ("#/$defs/", "#/definitions/")


def bounded_schemas(request: ModelRequest, *, structured: bool) -> dict[str, bytes]:
    """Tool name → its schema, for each tool that is sent in strict mode; a notice tells why another is not.

    Optional parameters stay optional. What strict mode only narrows stands in the description. `structured`: the form
    of the answer is sent too, and counts.
    """
    if not wants_strict(request):
        return {}
    schemas: dict[str, bytes] = {}
    form = request.output if structured else None
    used = Counter[str]() if form is None else _needs(accepted_schema(form.schema))
    for tool in request.tools:
        why = strict_schema(tool.parameters)[1]
        if not why:
            schema = accepted_schema(tool.parameters)
            needs = used + Counter({"strict tools": 1}) + _needs(schema)
            over = [f"{most} {what}" for what, most in _MOST.items() if needs[what] > most]
            why = "it refers to itself" if _recurs(schema) else f"a request has at most {over[0]}" if over else ""
        if why:
            say_loose(tool, why, request.memo)
        else:
            used, schemas[tool.name] = needs, canonical(schema)
    return schemas


def _needs(schema: object) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in _parts(schema):
        properties, required = part.get("properties"), part.get("required")
        if isinstance(properties, dict):
            asked = required if isinstance(required, list) else []
            found["optional parameters"] += sum(name not in asked for name in properties)
        found["parameters of several types"] += "anyOf" in part or isinstance(part.get("type"), list)
    return found


def _recurs(schema: dict[str, object]) -> bool:
    """Whether a definition, or the whole, is part of itself."""
    tables = {sign: schema.get(sign.strip("#/")) for sign in _REFERENCES}
    defined = {f"{sign}{name}": each for sign, table in tables.items() for name, each in _items(table)}
    leads = {name: {str(part["$ref"]) for part in _parts(each) if "$ref" in part} for name, each in defined.items()}
    for _ in leads:
        leads = {name: on.union(*(leads.get(other, set()) for other in on)) for name, on in leads.items()}
    return any(name in on for name, on in leads.items())


def _items(table: object) -> Iterator[tuple[str, object]]:
    if isinstance(table, dict):
        yield from table.items()


def _parts(schema: object) -> Iterator[dict[str, object]]:
    """The schema and every schema inside it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in _TABLES:
        for _, each in _items(schema.get(name)):
            yield from _parts(each)
    yield from _parts(schema.get("items"))
    choices = schema.get("anyOf")
    for each in choices if isinstance(choices, list) else ():
        yield from _parts(each)
