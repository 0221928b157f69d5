"""Asking a server for its tools, all pages of them, and hearing when they change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import mcp_types
from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from deepstrike.execution.mcp.catalogue import Listed
from deepstrike.execution.mcp.faults import Malformed
from deepstrike.execution.mcp.trimming import LARGEST_LIST, MORE, MOST_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp import Client

    from deepstrike.execution.mcp.sifting import Flaws
    from deepstrike.tools.documents import Json

MAX_PAGES: Final = 256

_SLOW: Final = ('"$', "pattern")
"""References and patterns can make a short schema take long to be checked; nothing else can."""


async def list_tools(client: Client, flaws: Flaws) -> tuple[Listed, ...]:
    """Every tool of every page, the first of those with one name. A page that fails fails the whole.

    Tools that are listed wrongly stand there with their flaw.

    Raises `Malformed` where the pages do not end, and what the client raises.
    """
    if client.server_capabilities.tools is None and client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return ()
    found: dict[str, Listed] = {}
    cursor: str | None = None
    flaws.found.clear()
    flaws.outputs.clear()
    flaws.revision = client.protocol_version
    room = LARGEST_LIST
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for each in page.tools:
            listed = _listed(each, flaws.outputs.get(each.name))
            room -= listed.size
            found.setdefault(each.name, listed)
        cursor = page.next_cursor
        many = len(found) + len(flaws.found) >= MOST_TOOLS
        if cursor is not None and (many or room < 0):
            flaws.found[MORE] = f"the server lists over {MOST_TOOLS} tools, or {LARGEST_LIST} bytes of them"
            cursor = None
        if cursor is None:
            wrong = (Listed(name, "", {}, flaw=why) for name, why in flaws.found.items() if name not in found)
            return (*found.values(), *wrong)
    raise Malformed(f"the server's list of tools has no end: over {MAX_PAGES} pages")


def _listed(tool: mcp_types.Tool, output: Mapping[str, Json] | None) -> Listed:
    hints = tool.annotations or mcp_types.ToolAnnotations()
    description = tool.description or tool.title or hints.title or ""
    text = json.dumps([tool.input_schema, output])
    return Listed(
        name=tool.name,
        description=description,
        schema=tool.input_schema,
        read_only=hints.read_only_hint is True,
        idempotent=hints.idempotent_hint is True,
        output=output,
        size=len(tool.name) + len(description) + len(text),
        slow=any(word in text for word in _SLOW),
    )


async def watch_list(client: Client, changed: Callable[[], None]) -> bool:
    """Call `changed` whenever the server's list changes. Returns whether changes may stay unheard from now on.

    The older revision sends notifications unasked; they go to the client's message handler.
    """
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or (tools is not None and not tools.list_changed):
        return False
    try:
        async with client.listen(tools_list_changed=True) as heard:
            async for _ in heard:
                changed()
    except (MCPError, SubscriptionLost, TimeoutError):
        return True
    return True
