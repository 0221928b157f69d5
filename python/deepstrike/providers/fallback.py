"""Several providers as one: the next answers where one fails."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator as AsyncGeneratorType
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from deepstrike.errors import BadRequest, ConfigError, ContentFiltered, ContextOverflow, ProviderError
from deepstrike.providers.base import Artefact, Memo, ModelInfo, Provider, Source
from deepstrike.providers.settings import shown
from deepstrike.stream import RetryEvent, ThinkingDelta
from deepstrike.wire.message import Notice, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from deepstrike.providers.base import LLMProvider, ModelEvent, ModelRequest

# Failures of the request, not of the service: another one would fail too, or answer what was refused for a reason. A
# prompt too long is shortened by the run.
_FINAL = (BadRequest, ContentFiltered, ContextOverflow)
# What the caller can take back when the next provider begins anew.
_UNSEEN = (RetryEvent, Notice, Source, ThinkingDelta, Artefact, Usage)
_FORGETTABLE = (ThinkingDelta, Artefact, Usage)
_MOST_KEPT = 64


class FallbackProvider(Provider):
    """Asks the first provider, and on its failure the next, as long as no text and no tool call was shown.

    Every provider first makes its own retries. The next one is asked after every `ProviderError` but `BadRequest`,
    `ContentFiltered` and `ContextOverflow`, which are of the request: those are raised, as is the failure of the last
    one. A change is told by a `Notice` with the code `fallback`, and by a `RetryEvent` if thinking was shown, which
    counts no more; a `Source` then says who answers, so that reply, cost and reasoning are its own. Every call begins
    with the first again; its open circuit breaker makes that cheap.

    `info` is that of the first, with the smallest window and output limit of all, so that a prompt fits every one, and
    with a price only if all have one: else what a call costs may be unknown, and `max_cost_usd` is refused. An
    extension is admitted if one of them knows it, and sent to those that do. `aclose` closes all.
    """

    def __init__(self, *providers: LLMProvider) -> None:
        if not providers:
            raise ConfigError("FallbackProvider needs at least one provider: FallbackProvider(first, second, …)")
        for provider in providers:
            if isinstance(provider, type) or not callable(getattr(provider, "stream", None)):
                raise ConfigError(
                    f"FallbackProvider takes providers, which are built and have a method stream, not {shown(provider)}"
                )
        self._providers = providers
        self._memos = _Memos(len(providers) - 1)
        self._known: set[tuple[int, str, type]] = set()
        known = [provider for provider in providers if isinstance(provider, Provider)]
        first = providers[0]
        self.dialect = first.dialect if isinstance(first, Provider) else ""
        own = first.info if isinstance(first, Provider) else ModelInfo("")
        self.info = _narrowest(own, [provider.info for provider in known])
        if len(known) < len(providers) or any(provider.info.price is None for provider in known):
            self.info = replace(self.info, price=None)
        # Elsewhere the first needs no word on it: it is who answers unless another is named.
        self._first_is_told = own.price != self.info.price
        self.structured = len(known) == len(providers) and all(provider.structured for provider in known)

    def sends_form(self) -> bool:
        """Whether each of them does."""
        return all(not isinstance(each, Provider) or each.sends_form() for each in self._providers)

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """See `Provider.admit`: the extensions that at least one of the providers knows."""
        return {name: value for name, value in extensions.items() if self._is_known(name, value)}

    def window(self, extensions: Mapping[str, object]) -> int | None:
        """See `Provider.window`: if one of the providers is asked for a window, the smallest of all."""
        known = [provider for provider in self._providers if isinstance(provider, Provider)]
        asked = {provider: window for provider in known if (window := provider.window(extensions)) is not None}
        return min(asked.get(provider, provider.info.window) for provider in known) if asked else None

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask one after the other. Raises the `ProviderError` of the last one asked."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Close what the providers opened on the running loop."""
        for provider in self._providers:
            if isinstance(provider, Provider):
                await provider.aclose()

    def __repr__(self) -> str:
        return f"FallbackProvider({', '.join(map(repr, self._providers))})"

    def _is_known(self, name: str, value: object) -> bool:
        """Whether one of them takes it. Raises the first one's `ConfigError` if none does."""
        if not any(self._knows(at, name, value) for at in range(len(self._providers))):
            _admitted(self._providers[0], {name: value})
        return True

    def _knows(self, at: int, name: str, value: object) -> bool:
        """Asked once for each name and kind of value: a refusal by the model is a warning, needed once only."""
        key = (at, name, type(value))
        if key in self._known:
            return True
        known = _knows(self._providers[at], name, value)
        if known:
            self._known.add(key)
        return known

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        last = len(self._providers) - 1
        for at, provider in enumerate(self._providers):
            heard = _Heard()
            try:
                async with aclosing(
                    _ask(provider, self._request(at, request), tell=at > 0 or self._first_is_told)
                ) as events:
                    async for event in events:
                        heard.note(event)
                        yield event
                return
            except ProviderError as fault:
                if at == last or heard.shown or isinstance(fault, _FINAL):
                    raise
                message = f"{_name(provider)} failed ({fault.code}: {fault.message}); asking "
                notice = Notice("fallback", message + _name(self._providers[at + 1]))
            if heard.forgettable:
                yield RetryEvent(at + 1, 0, notice.message)
            yield notice

    def _request(self, at: int, request: ModelRequest) -> ModelRequest:
        """The request for one provider: only the extensions it knows, and a memo of its own."""
        memo = request.memo if at == 0 else self._memos.get(request.memo)[at - 1]
        known = {name: value for name, value in request.extensions.items() if self._knows(at, name, value)}
        return msgspec.structs.replace(request, extensions=known, memo=memo)


class _Heard:
    """What a provider has said so far: something that cannot be taken back, and something that can."""

    __slots__ = ("forgettable", "shown")

    def __init__(self) -> None:
        self.shown = False
        self.forgettable = False

    def note(self, event: ModelEvent) -> None:
        kind = type(event)
        self.shown = self.shown or kind not in _UNSEEN
        self.forgettable = self.forgettable or kind in _FORGETTABLE


class _Memos:
    """The memos of the later providers, by the memo of the run: the least recently used ones are forgotten."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[Memo, tuple[Memo, ...]]] = OrderedDict()

    def get(self, outer: Memo) -> tuple[Memo, ...]:
        """The memos that belong to `outer`, new ones if there are none."""
        with self._lock:
            # The entry holds `outer`, so that no other memo can have its identity meanwhile.
            found = self._kept.pop(id(outer), None) or (outer, tuple(Memo() for _ in range(self._each)))
            self._kept[id(outer)] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return found[1]


async def _ask(provider: LLMProvider, request: ModelRequest, *, tell: bool) -> AsyncGenerator[ModelEvent, None]:
    if tell and isinstance(provider, Provider):
        yield Source(provider.dialect, provider.info.id, provider.info.price)
    elif tell:
        yield Source("", "")
    events = provider.stream(request)
    try:
        async for event in events:
            yield event
    finally:
        if isinstance(events, AsyncGeneratorType):
            await events.aclose()


def _admitted(provider: LLMProvider, extensions: Mapping[str, object]) -> Mapping[str, object]:
    return provider.admit(extensions) if isinstance(provider, Provider) else extensions


def _knows(provider: LLMProvider, name: str, value: object) -> bool:
    try:
        _admitted(provider, {name: value})
    except ConfigError:
        return False
    return True


def _name(provider: LLMProvider) -> str:
    return provider.info.id if isinstance(provider, Provider) else type(provider).__name__


def _narrowest(own: ModelInfo, all_of_them: Sequence[ModelInfo]) -> ModelInfo:
    limits = [info.max_output for info in all_of_them if info.max_output is not None]
    window = min((info.window for info in all_of_them), default=own.window)
    return replace(own, window=window, max_output=min(limits, default=None))
