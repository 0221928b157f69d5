"""The form of the answer as a `response_format`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.json_text import canonical
from deepstrike.providers.dialects.strict import is_strict

if TYPE_CHECKING:
    from deepstrike.providers.base import OutputSchema


def response_format(output: OutputSchema) -> dict[str, object]:
    """The field's value. Strict only where the schema keeps the rules of strict ones: others would be refused."""
    schema: object = msgspec.json.decode(output.schema)
    strict = is_strict(schema)
    return {
        "type": "json_schema",
        "json_schema": {"name": output.name, "schema": msgspec.Raw(canonical(schema)), "strict": strict},
    }
