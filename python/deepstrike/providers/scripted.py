"""A model that says what a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError, ProviderError
from deepstrike.providers.base import Finish, ModelEvent, ModelInfo, ModelRequest, Provider, ToolCall
from deepstrike.providers.settings import check_seconds, check_type, shown
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Spoken = str | Sequence[ModelEvent] | BaseException
Reply = Spoken | Callable[[ModelRequest], Spoken]


class ScriptedProvider(Provider):
    """Answers the n-th request with the n-th of `replies`; needs no key and no network.

    A reply is a text, a list of model events, an exception to raise, or a function of the request that gives one of
    these. A text becomes one `TextDelta`; a list that does not end with `Finish` gets one (`tool_calls` if it holds a
    `ToolCall`, else `stop`), unless `complete=False`, and one without `Usage` a usage of zero. `delay` seconds by the
    clock in force pass before each event. `requests` holds every request as it came. When the script is used up, the
    call fails with a `ProviderError` of code `script_exhausted`, or with `repeat_last` the last reply comes again.
    What is no reply raises `ConfigError`: here, or in the call whose function gave it. Safe for several loops and
    threads: each call takes the next reply.
    """

    dialect = "scripted"

    def __init__(
        self,
        replies: Iterable[Reply],
        *,
        delay: float = 0.0,
        repeat_last: bool = False,
        complete: bool = True,
        info: ModelInfo | None = None,
    ) -> None:
        if isinstance(replies, str) or not isinstance(replies, Iterable):
            raise ConfigError(
                f"replies must be a list of replies, as in ScriptedProvider(['hello']), not {shown(replies)}"
            )
        check_seconds("delay", delay)
        check_type("info", info, ModelInfo, "a ModelInfo(…)")
        self._replies = tuple(replies)
        for number, reply in enumerate(self._replies, 1):
            if not callable(reply):
                _check(f"reply {number}", reply)
        self._delay = delay
        self._repeat_last = repeat_last
        self._complete = complete
        self._lock = threading.Lock()
        self.info = info or ModelInfo("scripted")
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the next reply."""
        reply = self._next(request)
        spoken = reply(request) if callable(reply) else reply
        _check("what a reply's function gave", spoken)
        if isinstance(spoken, BaseException):
            raise spoken
        for event in self._events(spoken):
            if self._delay:
                from deepstrike.clock import current_clock

                await current_clock().sleep(self._delay)
            yield event

    def _next(self, request: ModelRequest) -> Reply:
        with self._lock:
            turn = len(self.requests)
            self.requests.append(request)
        if turn < len(self._replies):
            return self._replies[turn]
        if self._repeat_last and self._replies:
            return self._replies[-1]
        raise ProviderError(
            f"the script has {len(self._replies)} replies and this is request {turn + 1}: add a reply, or let the last "
            "one repeat (repeat_last=True)",
            code="script_exhausted",
        )

    def _events(self, spoken: str | Sequence[ModelEvent]) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = [TextDelta(spoken)] if isinstance(spoken, str) else list(spoken)
        if not self._complete or (events and isinstance(events[-1], Finish)):
            return events
        if not any(isinstance(event, Usage) for event in events):
            events.append(Usage(0, 0))
        calls = any(isinstance(event, ToolCall) for event in events)
        events.append(Finish("tool_calls" if calls else "stop"))
        return events


def _check(what: str, spoken: object) -> None:
    if isinstance(spoken, str | BaseException):
        return
    if not isinstance(spoken, Sequence) or isinstance(spoken, bytes | bytearray):
        raise ConfigError(f"{what} must be a text, a list of model events or an exception, not {shown(spoken)}")
    for event in spoken:
        if not isinstance(event, ModelEvent):
            raise ConfigError(
                f"{what} holds {shown(event)}, which is no model event: write TextDelta(…), ToolCall(…), …"
            )
