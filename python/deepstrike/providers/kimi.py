"""Kimi, of Moonshot AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.chat.dialect import ChatDialect, IdForm, Replay
from deepstrike.providers.extensions import COMPATIBLE_FIELDS, Field, switch
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.tables.kimi import ROWS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepstrike.providers.service import ServiceOptions

KIMI = Profile(
    name="kimi",
    base_url="https://api.moonshot.ai/v1",
    key_variable="MOONSHOT_API_KEY",
    url_variable="MOONSHOT_BASE_URL",
    dialect=ChatDialect(
        limit_field="max_completion_tokens",
        empty_content=True,
        files=False,
        forced_calls=False,
        structured=False,
        replay=Replay("reasoning_content", "all", demanded="tools"),
        # The model counts its calls in the ids; in another form they lead it astray.
        ids=IdForm(r"(?!call_|toolu_|fc_).+", "functions.{name}:{hash}", "0123456789"),
    ),
    fields={
        **COMPATIBLE_FIELDS,
        "enable_thinking": Field((bool,), "true or false", at=("thinking", "type"), wire=switch("enabled", "disabled")),
        "preserve_thinking": Field((bool,), "true or false", at=("thinking", "keep"), wire=switch("all", None)),
    },
    models=ROWS,
)


class KimiProvider(ServiceProvider):
    """Streams chat completions from Moonshot AI.

    `api_key` defaults to `MOONSHOT_API_KEY`, `base_url` to `MOONSHOT_BASE_URL`, else to the international address; keys
    of the mainland need `https://api.moonshot.cn/v1`, those of the coding plan `https://api.kimi.com/coding/v1`.
    Reasoning goes back with every reply; with tool calls the field is there even if there was none. Ids of tool calls
    go back as they came, those of another form in Kimi's. The other keywords are those of `ServiceOptions`.
    """

    def __init__(self, api_key: str | None = None, model: str = "kimi-k2.6", **options: Unpack[ServiceOptions]) -> None:
        super().__init__(KIMI, api_key, model, **options)
