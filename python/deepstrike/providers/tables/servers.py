"""Servers that speak chat completions, as data. Sources: their own documents, and recorded traffic. As of 2026-11-30.

A row says what a server wants sent; what servers answer differently is read in every form by the dialect. To add one,
write its profile, in a file of its own or here, and name it in `SERVERS`: one line, by which `profile="auto"` finds it
at the host of its address too.
"""

from __future__ import annotations

import string
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import BadRequest, ContextOverflow, Overloaded, QuotaExhausted, RateLimited, Unauthorized
from deepstrike.providers import access
from deepstrike.providers.deepseek import DEEPSEEK
from deepstrike.providers.dialects.chat.dialect import NEVER, ChatDialect, IdForm, Replay
from deepstrike.providers.dialects.chat.ids import AT_MOST_40
from deepstrike.providers.extensions import CHAT_FIELDS, COMPATIBLE_FIELDS, NUMBER, TABLE, WHOLE, Field, switch
from deepstrike.providers.faults import Words
from deepstrike.providers.kimi import KIMI
from deepstrike.providers.minimax import MINIMAX
from deepstrike.providers.openai import OPENAI_CHAT
from deepstrike.providers.profile import Profile
from deepstrike.providers.qwen import QWEN

if TYPE_CHECKING:
    from collections.abc import Mapping

# Local servers sample in more ways; thinking is a setting of the model's chat template.
_LOCAL_FIELDS: dict[str, Field] = {
    **CHAT_FIELDS,
    "top_k": WHOLE,
    "min_p": NUMBER,
    "repetition_penalty": NUMBER,
    "chat_template_kwargs": TABLE,
    "enable_thinking": Field((bool,), "true or false", at=("chat_template_kwargs", "enable_thinking")),
}
_THINKING_TYPE = Field((bool,), "true or false", at=("thinking", "type"), wire=switch("enabled", "disabled"))
_NINE_SIGNS = IdForm("[0-9a-zA-Z]{9}", "{hash}", string.digits + string.ascii_letters)
# A server started without what its tools need answers 500, which no retry mends.
_TEMPLATE = Words(texts={"--jinja": BadRequest, "jinja template": BadRequest})


def _local(name: str, base_url: str, dialect: ChatDialect, words: Words = _TEMPLATE) -> Profile:
    return Profile(name, base_url, "", "", dialect, _LOCAL_FIELDS, key_needed=False, words=words)


def _hosted(
    name: str,
    base_url: str,
    key_variable: str,
    dialect: ChatDialect,
    more: Mapping[str, Field] | None = None,
    words: Words | None = None,
) -> Profile:
    fields = {**COMPATIBLE_FIELDS, **(more or {})}
    return Profile(name, base_url, key_variable, "", dialect, fields, words=words or Words())


def _plain(replay: Replay = NEVER) -> ChatDialect:
    """What every server takes: a schema of the answer would keep some from calling tools, so none is sent."""
    return ChatDialect(reasoning_limit_field="max_tokens", files=False, structured=False, replay=replay)


GENERIC = _local("compatible", "http://localhost:8000/v1", _plain())
_VLLM = _local("vllm", "http://localhost:8000/v1", _plain(Replay("reasoning", "tools")))
_LLAMACPP = _local("llamacpp", "http://localhost:8080/v1", _plain(Replay("reasoning_content", "tools")))
_LMSTUDIO = _local("lmstudio", "http://localhost:1234/v1", _plain())
_OPENROUTER = _hosted(
    "openrouter",
    "https://openrouter.ai/api/v1",
    "OPENROUTER_API_KEY",
    ChatDialect(
        reasoning_limit_field="max_tokens",
        empty_content=True,
        structured=False,
        replay=Replay("reasoning", "all", details=True, same_model=True),
    ),
    {
        "enable_thinking": Field((bool,), "true or false", at=("reasoning", "enabled")),
        "thinking_budget": Field((int,), "a whole number", at=("reasoning", "max_tokens")),
        "reasoning_effort": Field((str,), "a string", at=("reasoning", "effort")),
        "top_k": WHOLE,
        "min_p": NUMBER,
        "provider": TABLE,
        "models": Field((list, tuple), "a list of model ids"),
        "transforms": Field((list, tuple), "a list of strings"),
    },
)
_GROQ = _hosted(
    "groq",
    "https://api.groq.com/openai/v1",
    "GROQ_API_KEY",
    ChatDialect(limit_field="max_completion_tokens", files=False, structured=False),
    {"service_tier": CHAT_FIELDS["service_tier"]},
)
_XAI = _hosted(
    "xai-chat",
    "https://api.x.ai/v1",
    "XAI_API_KEY",
    ChatDialect(limit_field="max_completion_tokens", reasoning_in_output=False, files=False),
    words=Words(texts={"incorrect api key": Unauthorized}),
)
_MISTRAL = _hosted(
    "mistral",
    "https://api.mistral.ai/v1",
    "MISTRAL_API_KEY",
    ChatDialect(reasoning_limit_field="max_tokens", files=False, structured=False, ids=_NINE_SIGNS),
    {"seed": Field((int,), "a whole number", at=("random_seed",))},
)
_ZAI = _hosted(
    "zai",
    "https://api.z.ai/api/paas/v4",
    "ZAI_API_KEY",
    ChatDialect(
        reasoning_limit_field="max_tokens",
        empty_content=True,
        files=False,
        structured=False,
        replay=Replay("reasoning_content", "tools"),
    ),
    {"enable_thinking": _THINKING_TYPE},
    Words({"1113": QuotaExhausted, "1261": ContextOverflow, "1302": RateLimited, "1305": Overloaded}),
)
_AZURE = Profile(
    name="azure",
    base_url="https://RESOURCE.openai.azure.com/openai/v1",
    key_variable="AZURE_OPENAI_API_KEY",
    url_variable="",
    dialect=ChatDialect(limit_field="max_completion_tokens", ids=AT_MOST_40),
    fields=CHAT_FIELDS,
    key_header="api-key",
    key_form="{}",
)
_OPENAI = replace(
    OPENAI_CHAT, dialect=ChatDialect(limit_field="max_completion_tokens", ids=AT_MOST_40), fields=CHAT_FIELDS
)

SERVERS: dict[str, Profile] = {
    "generic": GENERIC,
    "vllm": _VLLM,
    "llamacpp": _LLAMACPP,
    "lmstudio": _LMSTUDIO,
    "openrouter": _OPENROUTER,
    "groq": _GROQ,
    "xai": _XAI,
    "mistral": _MISTRAL,
    "zai": _ZAI,
    "azure": _AZURE,
    "openai": _OPENAI,
    "qwen": QWEN,
    "deepseek": DEEPSEEK,
    "minimax": MINIMAX,
    "kimi": KIMI,
}
# Further hosts, by the end of their name. A local address does not tell whose it is: servers share its ports.
_OTHER_HOSTS: dict[str, str] = {
    "open.bigmodel.cn": "zai",
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "dashscope-intl.aliyuncs.com": "qwen",
    "dashscope-us.aliyuncs.com": "qwen",
    "api.minimaxi.com": "minimax",
    "api.moonshot.cn": "kimi",
    "api.kimi.com": "kimi",
}


def server_at(host: str) -> Profile:
    """The profile of the server at this host, by the end of its name; `GENERIC` where that does not tell."""
    own = [(access.host(profile.base_url), name) for name, profile in SERVERS.items() if profile.key_needed]
    found = (name for end, name in (*own, *_OTHER_HOSTS.items()) if f".{host}".endswith(f".{end}"))
    return SERVERS.get(next(found, ""), GENERIC)
