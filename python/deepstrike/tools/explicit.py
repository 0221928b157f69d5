"""Explicit `parameters=`: a JSON schema that the user wrote, checked when the tool is made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.tools.signature import Signature


def read_schema(name: str, parameters: Mapping[str, object] | str) -> str:
    """The schema as canonical text, in the user's order. Raises `ConfigError` unless it describes an object."""
    try:
        schema = json.loads(parameters) if isinstance(parameters, str) else dict(parameters)
        if isinstance(schema, dict) and "type" not in schema:
            schema = {"type": "object", **schema}
        text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"tool {name!r}: parameters= is no JSON schema: {error}") from error
    if not isinstance(schema, dict) or schema["type"] != "object":
        raise ConfigError(
            f'tool {name!r}: parameters= must be a schema with "type": "object", as in '
            '{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}'
        )
    if not isinstance(schema.get("properties", {}), dict) or not isinstance(schema.get("required", []), list):
        raise ConfigError(f'tool {name!r}: in parameters=, "properties" must be an object and "required" an array')
    return text


def check_fits(name: str, schema: str, signature: Signature) -> None:
    """Raises `ConfigError` if the function cannot take what the schema offers, or needs what it does not offer."""
    offered = json.loads(schema).get("properties", {})
    taken = {each.name: each for each in signature.parameters if each.name != signature.context}
    unknown = [each for each in offered if each not in taken]
    if unknown and not signature.open:
        raise ConfigError(
            f"tool {name!r}: parameters= offers {', '.join(map(repr, unknown))}, which the function does not take; "
            "arguments are passed by name, so add the parameter, or **kwargs"
        )
    lacking = [each.name for each in taken.values() if each.default is each.empty and each.name not in offered]
    if lacking:
        raise ConfigError(
            f"tool {name!r}: the function needs {', '.join(map(repr, lacking))}, which parameters= does not offer; "
            "arguments are passed by name"
        )


def property_types(schema: str) -> dict[str, str]:
    """Top-level property → its `type`, where that is one word."""
    properties = json.loads(schema).get("properties", {})
    return {
        name: each["type"]
        for name, each in properties.items()
        if isinstance(each, dict) and isinstance(each.get("type"), str)
    }
