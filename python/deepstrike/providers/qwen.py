"""Qwen, by the OpenAI-compatible address of Alibaba's Model Studio (DashScope)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import RateLimited
from deepstrike.providers.dialects.chat.dialect import ChatDialect, Replay
from deepstrike.providers.extensions import COMPATIBLE_FIELDS, FLAG, NUMBER, WHOLE, Field
from deepstrike.providers.faults import Words
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.tables.qwen import ROWS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepstrike.providers.service import ServiceOptions

QWEN = Profile(
    name="qwen",
    base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
    key_variable="DASHSCOPE_API_KEY",
    url_variable="DASHSCOPE_BASE_URL",
    dialect=ChatDialect(
        reasoning_limit_field="max_tokens",
        empty_content=True,
        files=False,
        forced_calls=False,
        structured=False,
        breakpoint=b',"cache_control":{"type":"ephemeral"}',
        # Reasoning that goes back is ignored unless the model was told to keep it.
        replay=Replay("reasoning_content", "all", asked_by="preserve_thinking"),
    ),
    fields={
        **COMPATIBLE_FIELDS,
        "enable_thinking": FLAG,
        "thinking_budget": WHOLE,
        "preserve_thinking": FLAG,
        "enable_search": FLAG,
        "top_k": WHOLE,
        "repetition_penalty": NUMBER,
        "cache_ttl": Field((str,), "'5m' or 'off'", sent=False, words=frozenset({"5m", "off"})),
    },
    models=ROWS,
    words=Words(codes={"limit_requests": RateLimited}),
    hosts=("dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
)


class QwenProvider(ServiceProvider):
    """Streams chat completions from Alibaba's Model Studio.

    `api_key` defaults to `DASHSCOPE_API_KEY`, `base_url` to `DASHSCOPE_BASE_URL`, else to the mainland address; keys
    are regional, so one of another region needs its `base_url`
    (`https://dashscope-intl.aliyuncs.com/compatible-mode/v1`). Whether a model of the table thinks is always said
    (`enable_thinking`). Prompts are cached at up to four places; with `extensions["cache_ttl"]` "off" it is left to the
    service's implicit cache. The other keywords are those of `ServiceOptions`.
    """

    def __init__(
        self, api_key: str | None = None, model: str = "qwen3.7-plus", **options: Unpack[ServiceOptions]
    ) -> None:
        super().__init__(QWEN, api_key, model, **options)
