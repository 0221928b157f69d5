"""Google's Gemini models, by their native interface."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deepstrike.errors import BadRequest, ContextOverflow, Overloaded, QuotaExhausted, RateLimited, Unauthorized
from deepstrike.providers.dialects.gemini.dialect import GeminiDialect
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.extensions import CHAT_FIELDS, FLAG, NUMBER, TEXT, WHOLE, Field
from deepstrike.providers.faults import Words
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.settings import check_model, check_type
from deepstrike.providers.tables.gemini import ROWS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Unpack

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.providers.service import ServiceOptions

_SIGNATURE = re.compile(r"thought[ _]?signature", re.IGNORECASE)
_MODES = {"auto": "AUTO", "required": "ANY", "any": "ANY", "none": "NONE", "validated": "VALIDATED"}


def _setting(kind: Field, wire: str) -> Field:
    return replace(kind, at=("generationConfig", wire))


def _stops(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _choice(value: object) -> object:
    """`auto`, `required`, `none`, the name of a tool, a choice in chat form, or Gemini's own object."""
    if isinstance(value, Mapping):
        named = value.get("function")
        if not isinstance(named, Mapping):
            return value
        value = named.get("name")
    if not isinstance(value, str):
        return None
    mode = _MODES.get(value.lower())
    return {"mode": mode} if mode else {"mode": "ANY", "allowedFunctionNames": [wire_name(value)]}


# Source: the vendor's reference of `generateContent` and `GenerationConfig`.
FIELDS: dict[str, Field] = {
    "temperature": _setting(NUMBER, "temperature"),
    "top_p": _setting(NUMBER, "topP"),
    "top_k": _setting(WHOLE, "topK"),
    "seed": _setting(WHOLE, "seed"),
    "stop": replace(_setting(CHAT_FIELDS["stop"], "stopSequences"), wire=_stops),
    "presence_penalty": _setting(NUMBER, "presencePenalty"),
    "frequency_penalty": _setting(NUMBER, "frequencyPenalty"),
    "enable_thinking": replace(FLAG, at=("thinking", "enable")),
    "reasoning_effort": replace(TEXT, at=("thinking", "effort")),
    "thinking_level": replace(TEXT, at=("thinking", "level")),
    "thinking_budget": replace(WHOLE, at=("thinking", "budget")),
    "tool_choice": replace(CHAT_FIELDS["tool_choice"], at=("toolConfig", "functionCallingConfig"), wire=_choice),
    "safety_settings": Field((list, tuple), "a list of dicts", at=("safetySettings",)),
    "cached_content": replace(TEXT, at=("cachedContent",)),
    "max_output_tokens": CHAT_FIELDS["max_output_tokens"],
    "expose_reasoning": CHAT_FIELDS["expose_reasoning"],
    "extra_body": CHAT_FIELDS["extra_body"],
}
_WORDS = Words(
    codes={
        "api_key_invalid": Unauthorized,
        "api_key_expired": Unauthorized,
        "unauthenticated": Unauthorized,
        "permission_denied": Unauthorized,
        "resource_exhausted": RateLimited,
        "unavailable": Overloaded,
        "internal": Overloaded,
        "deadline_exceeded": Overloaded,
        "invalid_argument": BadRequest,
        "failed_precondition": BadRequest,
        "not_found": BadRequest,
    },
    texts={
        # The id of the violated quota, such as GenerateRequestsPerDayPerProjectPerModel-FreeTier.
        "perday": QuotaExhausted,
        "exceeds the maximum number of tokens allowed": ContextOverflow,
    },
    remedies={
        "api_key_invalid": "check the key in GEMINI_API_KEY, GOOGLE_API_KEY or api_key",
    },
)
GEMINI = Profile(
    name="gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    key_variable="GEMINI_API_KEY",
    url_variable="GOOGLE_GEMINI_BASE_URL",
    dialect=GeminiDialect(),
    fields=FIELDS,
    models=ROWS,
    key_header="x-goog-api-key",
    key_form="{}",
    words=_WORDS,
)


class GeminiProvider(ServiceProvider):
    """Streams from the Gemini API.

    `api_key` defaults to `GEMINI_API_KEY`, then to `GOOGLE_API_KEY`; `base_url` to `GOOGLE_GEMINI_BASE_URL`, else to
    Google's address. An address without a path gets the version, `/v1beta`. Thought signatures go back on the parts
    they came on, only to the model that made them; where the service refuses them all the same, the request is sent
    once more without them, with a notice `artefact_dropped`. The other keywords are those of `ServiceOptions`.
    """

    def __init__(
        self, api_key: str | None = None, model: str = "gemini-3.8-flash", **options: Unpack[ServiceOptions]
    ) -> None:
        given = options.get("base_url")
        check_type("base_url", given, str, "an address as text")
        check_model(model)
        if api_key is None and not os.environ.get(GEMINI.key_variable):
            api_key = os.environ.get("GOOGLE_API_KEY") or None
        options["base_url"] = _with_version(given or os.environ.get(GEMINI.url_variable))
        super().__init__(GEMINI, api_key, model.removeprefix("models/"), **options)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """See `ServiceProvider.stream`."""
        from deepstrike.providers.transport.call import call

        signed = True
        while True:
            try:
                async with aclosing(call(lambda: self._question(request))) as events:
                    async for event in events:
                        yield event
                return
            except BadRequest as fault:
                if not signed or not _SIGNATURE.search(fault.message):
                    raise
            self._unsign(request)
            signed = False

    def _unsign(self, request: ModelRequest) -> None:
        from deepstrike.providers.dialects.gemini.turns import unsign

        unsign(self._asked(request))


def _with_version(address: str | None) -> str | None:
    """Google's own clients are given the address without the version."""
    if address is None:
        return None
    try:
        bare = urlsplit(address).path in ("", "/")
    except ValueError:
        return address  # refused with the others, in better words
    return f"{address.rstrip('/')}/v1beta" if bare else address
