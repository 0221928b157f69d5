"""MiniMax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import (
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unauthorized,
)
from deepstrike.providers.dialects.chat.dialect import ChatDialect, Replay
from deepstrike.providers.extensions import COMPATIBLE_FIELDS, FLAG, Field, switch
from deepstrike.providers.faults import Words
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.tables.minimax import ROWS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepstrike.providers.service import ServiceOptions

# `base_resp.status_code`, as the vendor lists them. What is not here may pass and is tried again.
_CODES: dict[str, type[ProviderError]] = {
    "1002": RateLimited,
    "1004": Unauthorized,
    "1008": QuotaExhausted,
    "1026": ContentFiltered,
    "1027": ContentFiltered,
    "1039": ContextOverflow,
    "1041": RateLimited,
    "1042": BadRequest,
    "2013": BadRequest,
    "2049": Unauthorized,
    "2056": QuotaExhausted,
    "2061": Unauthorized,
}
MINIMAX = Profile(
    name="minimax",
    base_url="https://api.minimax.io/v1",
    key_variable="MINIMAX_API_KEY",
    url_variable="MINIMAX_BASE_URL",
    dialect=ChatDialect(
        limit_field="max_completion_tokens",
        always={"reasoning_split": True},
        empty_content=True,
        files=False,
        structured=False,
        replay=Replay(turns="all", details=True, inline=True),
        split_think=True,
    ),
    fields={
        **COMPATIBLE_FIELDS,
        "enable_thinking": Field(
            (bool,), "true or false", at=("thinking", "type"), wire=switch("adaptive", "disabled")
        ),
        "reasoning_split": FLAG,
    },
    models=ROWS,
    words=Words(_CODES, {"context window exceeds limit": ContextOverflow}),
)


class MiniMaxProvider(ServiceProvider):
    """Streams chat completions from MiniMax.

    `api_key` defaults to `MINIMAX_API_KEY`, `base_url` to `MINIMAX_BASE_URL`, else to the international address; keys
    of the mainland need `https://api.minimaxi.com/v1`. Reasoning is asked for apart from the text (`reasoning_split`)
    and goes back as it came; where a server writes it in `<think>` tags it is split off and goes back in tags. The
    other keywords are those of `ServiceOptions`.
    """

    def __init__(
        self, api_key: str | None = None, model: str = "MiniMax-M3", **options: Unpack[ServiceOptions]
    ) -> None:
        super().__init__(MINIMAX, api_key, model, **options)
