"""DeepSeek."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.providers.dialects.chat.dialect import ChatDialect, Replay
from deepstrike.providers.dialects.strict import StrictRules
from deepstrike.providers.extensions import COMPATIBLE_FIELDS, FLAG, Field, switch
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.tables.deepseek import ROWS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepstrike.providers.service import ServiceOptions

DEEPSEEK = Profile(
    name="deepseek",
    base_url="https://api.deepseek.com",
    key_variable="DEEPSEEK_API_KEY",
    url_variable="DEEPSEEK_BASE_URL",
    dialect=ChatDialect(
        reasoning_limit_field="max_tokens",
        empty_content=True,
        files=False,
        forced_calls=False,
        structured=False,
        # Demanded with tool calls, ignored elsewhere; some servers of the same models demand it everywhere.
        replay=Replay("reasoning_content", "all", demanded="all"),
        # The vendor's guide to tool calls, its strict mode (beta).
        strict=StrictRules(
            formats=frozenset({"email", "hostname", "ipv4", "ipv6", "uuid"}),
            told=frozenset({"maxItems", "minItems"}),
            plain=True,
            whole=True,
        ),
    ),
    fields={
        **COMPATIBLE_FIELDS,
        "strict_tools": replace(FLAG, sent=False),
        "enable_thinking": Field((bool,), "true or false", at=("thinking", "type"), wire=switch("enabled", "disabled")),
    },
    models=ROWS,
    strict_path="/beta",
)


class DeepSeekProvider(ServiceProvider):
    """Streams chat completions from DeepSeek.

    `api_key` defaults to `DEEPSEEK_API_KEY`, `base_url` to `DEEPSEEK_BASE_URL`, else to DeepSeek's address. Reasoning
    goes back with every reply of a thinking model, an empty one where there is none. To the reasoner of the first
    generation (`deepseek-reasoner`, `deepseek-r1`) no tools are offered and no reasoning is sent. With the extension
    `strict_tools` requests whose tools can all be strict go, at DeepSeek's own address, to its `/beta` path. The other
    keywords are those of `ServiceOptions`.
    """

    def __init__(
        self, api_key: str | None = None, model: str = "deepseek-flash", **options: Unpack[ServiceOptions]
    ) -> None:
        super().__init__(DEEPSEEK, api_key, model, **options)
