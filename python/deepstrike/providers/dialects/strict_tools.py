"""Tools in strict mode: the service then makes every call fit its tool's schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.providers.dialects.json_text import canonical_text
from deepstrike.providers.dialects.plain_schema import plain_schema
from deepstrike.providers.dialects.strict import USUAL
from deepstrike.providers.dialects.strict_form import NotStrict, strict_form
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from deepstrike.providers.base import Memo, ModelRequest
    from deepstrike.providers.dialects.strict import StrictRules
    from deepstrike.wire.message import ToolSpec

STRICT_TOOLS: Final = "strict_tools"
"""The extension that asks for it."""


def wants_strict(request: ModelRequest) -> bool:
    """Whether the tools of this request are to be sent in strict mode."""
    return request.extensions.get(STRICT_TOOLS) is True


def strict_schemas(request: ModelRequest, rules: StrictRules = USUAL) -> dict[str, bytes]:
    """Tool name → its schema, for each tool that is sent in strict mode; notices tell why others are not."""
    if not wants_strict(request):
        return {}
    schemas: dict[str, bytes] = {}
    loose: list[str] = []
    for tool in request.tools:
        made, why = strict_schema(tool.parameters, rules)
        if made is None:
            say_loose(tool, why, request.memo)
            loose.append(tool.name)
        else:
            schemas[tool.name] = canonical_text(made)
    if not (loose and rules.whole):
        return schemas
    named = ", ".join(map(repr, loose))
    told = "no tool is sent in strict mode, for the service takes all tools of a request so, or none"
    request.memo.notices.append(Notice("loose_tools", f"{told}: leave out {named}, or change what they take"))
    return {}


def say_loose(tool: ToolSpec, why: str, memo: Memo) -> None:
    """Tell that a tool is sent as ever."""
    memo.notices.append(Notice("loose_tool", f"the tool {tool.name!r} is not sent in strict mode: {why}"))


def strict_schema(parameters: str, rules: StrictRules = USUAL) -> tuple[str | None, str]:
    """The schema, as JSON text, in the form of strict mode, or None and what that mode cannot say of it."""
    try:
        read = json.loads(parameters)
        given = read if isinstance(read, dict) else {}
        made = strict_form(plain_schema(given) if rules.plain else given, rules)
    except (NotStrict, RecursionError) as reason:
        return None, str(reason) if isinstance(reason, NotStrict) else "it nests too deep"
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")), ""
