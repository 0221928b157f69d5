"""Which tools a service can hold the model to, and what stands in the way of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.strict_tools import strict_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepstrike.wire.message import ToolSpec


def strict_report(specs: Iterable[ToolSpec]) -> dict[str, str]:
    """Tool name → why its schema cannot be sent in strict mode; empty for one that can.

    `strict_report(plane.specs())`. Strict mode is asked for by `extensions={"strict_tools": True}` of `OpenAIProvider`,
    on either interface, and of `AnthropicProvider`, which has bounds for all tools of a request beside. What it cannot
    say is told in a `NoticeEvent` of code `loose_tool` at the first call, too, and such a tool is sent as ever.
    """
    return {spec.name: strict_schema(spec.parameters)[1] for spec in specs}
