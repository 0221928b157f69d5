"""OpenAI by its two wires, Responses and chat completions, and every server that speaks one of them."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from deepstrike.errors import BadRequest, ConfigError
from deepstrike.providers import access
from deepstrike.providers.dialects.chat.dialect import ChatDialect
from deepstrike.providers.dialects.chat.ids import AT_MOST_40
from deepstrike.providers.dialects.responses.dialect import ResponsesDialect
from deepstrike.providers.extensions import CHAT_FIELDS, FLAG, TABLE, TEXT, Field, merged
from deepstrike.providers.faults import Words
from deepstrike.providers.models import lookup
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.settings import check_model, check_type
from deepstrike.providers.tables.openai import ALWAYS_REASONS, CHAT, ROWS
from deepstrike.stream import RetryEvent
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from typing_extensions import Unpack

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.providers.service import ServiceOptions

Api = Literal["auto", "chat", "responses"]
_UNSEEN = (Notice, RetryEvent)


class SummaryRefused(BadRequest):
    """The organisation may not see reasoning summaries: the vendor shows them to verified ones only."""


class ReasoningRefused(BadRequest):
    """The service cannot read the encrypted reasoning that it was sent: another key's, or lost on its side."""


def _form(value: object) -> object:
    """Chat's `response_format` as `text.format`, where the schema's name and rules stand one level higher.

    The schema's keys keep their order, for the model writes its answer in it.
    """
    inner = value.get("json_schema") if isinstance(value, dict) else None
    if not isinstance(inner, dict):
        return value
    schema = msgspec.Raw(msgspec.json.encode(inner.get("schema")))
    return {"type": "json_schema", **inner, "schema": schema}


def _choice(value: object) -> object:
    """Chat's `tool_choice`, where a chosen function's name stands one level lower."""
    inner = value.get("function") if isinstance(value, dict) else None
    return {"type": "function", **inner} if isinstance(inner, dict) else value


_BOTH = {**CHAT_FIELDS, "prompt_cache_options": TABLE, "strict_tools": replace(FLAG, sent=False)}
_ONLY_RESPONSES = {
    "reasoning_context": replace(TEXT, at=("reasoning", "context")),
    "reasoning_summary": replace(TEXT, at=("reasoning", "summary")),
}
_ONLY_CHAT = frozenset({"frequency_penalty", "logit_bias", "presence_penalty", "seed", "stop"})
_RESPONSES_FIELDS: dict[str, Field] = {
    **_BOTH,
    **_ONLY_RESPONSES,
    "reasoning_effort": replace(TEXT, at=("reasoning", "effort")),
    "response_format": replace(CHAT_FIELDS["response_format"], at=("text", "format"), wire=_form),
    "tool_choice": replace(CHAT_FIELDS["tool_choice"], wire=_choice),
    "verbosity": replace(TEXT, at=("text", "verbosity")),
}

OPENAI_CHAT = Profile(
    name="openai-chat",
    base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    dialect=ChatDialect(ids=AT_MOST_40),
    fields={**_BOTH, **_ONLY_RESPONSES},
    models=ROWS,
    words=Words(
        remedies={
            "reasoning_effort": "models from gpt-5.4 on take tools together with reasoning on Responses only: pass "
            "api='responses' to OpenAIProvider, or the extension reasoning_effort='none'"
        }
    ),
)
OPENAI_RESPONSES = replace(
    OPENAI_CHAT,
    name="openai-responses",
    dialect=ResponsesDialect(),
    fields=_RESPONSES_FIELDS,
    words=Words(
        codes={
            "invalid_encrypted_content": ReasoningRefused,
            "invalid_prompt": BadRequest,
            "model_not_found": BadRequest,
            "reasoning.summary": SummaryRefused,
        }
    ),
)


class OpenAIProvider(ServiceProvider):
    """Streams answers from OpenAI or, with `base_url`, from a compatible server.

    `api` chooses the wire: `responses` or `chat`; `auto` takes Responses at OpenAI's own address for every model that
    the table does not know to work on chat completions (from gpt-5.4 on, tools and reasoning go together on Responses
    only), and chat completions at any other address.

    On Responses the summary of a model's reasoning is asked for where it reasons and `expose_reasoning` is not off. An
    organisation that may not see it is asked again without, once, with a notice `summary_refused`. Encrypted reasoning
    that the service can no longer read is left out likewise, with a notice `artefact_dropped`.

    `api_key` defaults to `OPENAI_API_KEY`, `base_url` to `OPENAI_BASE_URL`, else to OpenAI's address. There a missing
    key raises `ConfigError`; a server elsewhere is then asked without an `Authorization` header. The other keywords are
    those of `ServiceOptions`.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = "gpt-5-mini",
        *,
        api: Api = "auto",
        **options: Unpack[ServiceOptions],
    ) -> None:
        super().__init__(_profile(api, model, options.get("base_url")), api_key, model, **options)
        self._responses = self._profile is OPENAI_RESPONSES
        # Whoever speaks Responses has the field, also a regional host or a server that was named for it.
        self.structured = self.structured or self._responses
        self._summaries = self._responses and self.info.reasoning

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """See `Provider.admit`. What only the other of the two wires has is dropped with a warning too."""
        given = dict(extensions)
        if given.get("reasoning_effort") == "none" and ALWAYS_REASONS in self.info.traits:
            _warn(f"extension 'reasoning_effort' was dropped: the model {self.info.id!r} cannot do without reasoning")
            del given["reasoning_effort"]
        kept = dict(super().admit(given))
        lost = _ONLY_CHAT if self._responses else _ONLY_RESPONSES.keys()
        for name in sorted(lost & kept.keys()):
            other = "chat" if self._responses else "responses"
            _warn(f"extension {name!r} was dropped: {self.info.id!r} is asked by the API that has none (api={other!r})")
            del kept[name]
        return kept

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """See `ServiceProvider.stream`."""
        return self._mending(request) if self._responses else super().stream(request)

    async def _mending(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and where only an extra was refused before anything was shown, ask once more without it."""
        quieted = forgotten = False
        while True:
            shown = False
            events = super().stream(request)
            try:
                async for event in events:
                    shown = shown or type(event) not in _UNSEEN
                    yield event
                return
            except SummaryRefused:
                if shown or quieted or request.extensions.get("reasoning_summary") is not None:
                    raise
                quieted, self._summaries = True, False
                request.memo.head = b""
                yield Notice("summary_refused", "the service shows reasoning summaries to verified organisations only")
            except ReasoningRefused:
                if shown or forgotten or not _forget_reasoning(request):
                    raise
                forgotten = True
                yield Notice("artefact_dropped", "earlier reasoning is not sent: the service cannot read it any more")
            finally:
                if isinstance(events, AsyncGenerator):
                    await events.aclose()

    def _asked(self, request: ModelRequest) -> Asked:
        asked = super()._asked(request)
        if request.memo.head or not self._summaries or request.extensions.get("expose_reasoning") is False:
            return asked
        reasoning = asked.fields.get("reasoning")
        if isinstance(reasoning, dict) and reasoning.get("effort") == "none":
            return asked
        return replace(asked, fields=merged({"reasoning": {"summary": "auto"}}, asked.fields))


def _profile(api: Api, model: str, base_url: str | None) -> Profile:
    if api not in ("auto", "chat", "responses"):
        raise ConfigError(f"api must be 'auto', 'chat' or 'responses', not {api!r}")
    check_model(model)
    check_type("base_url", base_url, str, "an address as text")
    if api != "auto":
        return OPENAI_CHAT if api == "chat" else OPENAI_RESPONSES
    # With a dot in front, so that the regional hosts (eu.api.openai.com) are its own too and no other name is.
    own = f".{access.host(access.address(base_url, OPENAI_CHAT))}".endswith(f".{access.host(OPENAI_CHAT.base_url)}")
    row = lookup(model, ROWS)
    # A row of the user's own, set for its price or window, does not change the wire of a model that we know.
    old = CHAT in row.traits or CHAT in ROWS.get(model, row).traits
    return OPENAI_CHAT if old or not own else OPENAI_RESPONSES


def _forget_reasoning(request: ModelRequest) -> bool:
    """Encode the history again without reasoning and item ids; False if there was none in it."""
    from deepstrike.providers.dialects.responses.encode import append_turns

    memo = request.memo
    before = bytes(memo.body)
    memo.body.clear()
    memo.turns = 0
    append_turns(memo, request.turns, None)
    memo.notices.clear()
    return bytes(memo.body) != before


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=3)
