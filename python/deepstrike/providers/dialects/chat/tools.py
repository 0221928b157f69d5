"""The tools of a request, and whether the model may be made to call one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.chat.dialect import NO_TOOLS, TAKES_REQUIRED
from deepstrike.providers.dialects.json_text import canonical_text, quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.strict_tools import strict_schemas
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.dialects.base import Asked
    from deepstrike.providers.dialects.chat.dialect import ChatDialect
    from deepstrike.wire.message import ToolSpec

_CHOICE = "tool_choice"
_OF_TOOLS = (_CHOICE, "parallel_tool_calls")


def tools_part(asked: Asked, dialect: ChatDialect) -> bytes:
    """The `tools` field with a comma before it; nothing without tools, and for a model that takes none."""
    tools = asked.request.tools
    asked.request.memo.strict = False
    if tools and NO_TOOLS in asked.info.traits:
        message = f"{asked.info.id} takes no tools, so none of the {len(tools)} was offered to it"
        asked.request.memo.notices.append(Notice("tools_dropped", message))
        return b""
    if not tools:
        return b""
    strict = strict_schemas(asked.request, dialect.strict)
    asked.request.memo.strict = bool(strict)
    return b',"tools":[%b]' % b",".join(_tool(tool, strict.get(tool.name)) for tool in tools)


def without_refused(
    fields: Mapping[str, object], asked: Asked, dialect: ChatDialect, *, tools: bool
) -> Mapping[str, object]:
    """`fields` without those that mean nothing, or are refused, beside these tools and this thinking."""
    if not tools:
        return {name: value for name, value in fields.items() if name not in _OF_TOOLS}
    choice = fields.get(_CHOICE)
    if choice is None or dialect.forced_calls or choice in ("auto", "none") or not _thinks(asked):
        return fields
    if choice == "required" and TAKES_REQUIRED in asked.info.traits:
        return fields
    message = f"tool_choice was not sent: {asked.info.id} cannot be made to call a tool while it thinks"
    asked.request.memo.notices.append(Notice("field_dropped", message))
    return {name: value for name, value in fields.items() if name != _CHOICE}


def _thinks(asked: Asked) -> bool:
    given = asked.request.extensions.get("enable_thinking")
    return bool(asked.info.defaults.get("enable_thinking", asked.info.reasoning) if given is None else given)


def _tool(tool: ToolSpec, strict: bytes | None) -> bytes:
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b%b}}' % (
        quote(wire_name(tool.name)),
        quote(tool.description),
        canonical_text(tool.parameters) if strict is None else strict,
        b"" if strict is None else b',"strict":true',
    )
