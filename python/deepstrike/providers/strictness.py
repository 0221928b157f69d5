"""Which tools a service can hold the model to, and what stands in the way of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.strict import USUAL
from deepstrike.providers.dialects.strict_tools import strict_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepstrike.providers.service import ServiceProvider
    from deepstrike.wire.message import ToolSpec


def strict_report(specs: Iterable[ToolSpec], provider: ServiceProvider | None = None) -> dict[str, str]:
    """Tool name → why its schema cannot be sent in strict mode; empty for one that can.

    `strict_report(plane.specs())`. Strict mode is asked for by `extensions={"strict_tools": True}` of `OpenAIProvider`,
    on either interface, of `AnthropicProvider`, which has bounds for all tools of a request beside, and of
    `DeepSeekProvider`, which takes all tools of a request so, or none, and less of the schema language: pass the
    `provider` to have its rules applied, else OpenAI's are. What cannot be said is told in a `NoticeEvent` of code
    `loose_tool` at the first call, too, and such a tool is sent as ever.
    """
    rules = USUAL if provider is None else provider.strict_rules
    return {spec.name: strict_schema(spec.parameters, rules)[1] for spec in specs}
