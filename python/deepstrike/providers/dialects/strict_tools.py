"""Tools in strict mode: the service then makes every call fit its tool's schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deepstrike.providers.dialects.json_text import canonical_text
from deepstrike.providers.dialects.strict_form import NotStrict, strict_form
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from deepstrike.providers.base import Memo, ModelRequest
    from deepstrike.wire.message import ToolSpec

STRICT_TOOLS: Final = "strict_tools"
"""The extension that asks for it."""


def wants_strict(request: ModelRequest) -> bool:
    """Whether the tools of this request are to be sent in strict mode."""
    return request.extensions.get(STRICT_TOOLS) is True


def strict_parameters(tool: ToolSpec, request: ModelRequest) -> bytes | None:
    """The tool's schema for strict mode; None where it is not wanted or cannot be: then a notice says why."""
    if not wants_strict(request):
        return None
    made, why = strict_schema(tool.parameters)
    if made is None:
        say_loose(tool, why, request.memo)
        return None
    return canonical_text(made)


def say_loose(tool: ToolSpec, why: str, memo: Memo) -> None:
    """Tell that a tool is sent as ever."""
    memo.notices.append(Notice("loose_tool", f"the tool {tool.name!r} is not sent in strict mode: {why}"))


def strict_schema(parameters: str) -> tuple[str | None, str]:
    """The schema, as JSON text, in the form of strict mode, or None and what that mode cannot say of it."""
    try:
        read = json.loads(parameters)
        made = strict_form(read if isinstance(read, dict) else {})
    except (NotStrict, RecursionError) as reason:
        return None, str(reason) if isinstance(reason, NotStrict) else "it nests too deep"
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")), ""
