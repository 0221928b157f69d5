"""The form of the answer as a `response_format`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.strict_form import sent_schema

if TYPE_CHECKING:
    from deepstrike.providers.base import Memo, OutputSchema


def response_format(output: OutputSchema, memo: Memo) -> dict[str, object]:
    """The field's value: in strict mode where the schema can be made to fit it, else a notice says why not."""
    schema, strict = sent_schema(output, memo)
    named = {"name": output.name, "schema": msgspec.Raw(schema), "strict": strict}
    return {"type": "json_schema", "json_schema": named}
