"""What is asked, and what was heard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deepstrike.errors import ProviderError
from deepstrike.providers.base import Finish, Memo, ModelEvent, ModelRequest, ToolCall
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing.renderers.base import Spoken
from deepstrike.wire.message import Text, ToolSpec, Usage, UserBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from deepstrike.providers.base import LLMProvider

PATIENCE_SECONDS = 20.0
"""Nothing that a check asks for takes longer on a working provider, also on a loaded machine."""

_CITY = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
TOOLS = (ToolSpec("get_weather", "The weather in a city.", _CITY), ToolSpec("get_time", "The time there.", _CITY))
KINDS = tuple(ModelEvent.__args__)
"""The classes of all model events."""


def request(text: str = "hello", *, extensions: Mapping[str, object] | None = None) -> ModelRequest:
    """A first request with two tools."""
    turns = [UserBlock((Text(text),))]
    return ModelRequest("Be brief.", "", turns, TOOLS, {} if extensions is None else extensions, memo=Memo())


@dataclass(slots=True)
class Heard:
    """The events of a call, and the error that ended it if one did."""

    events: list[ModelEvent] = field(default_factory=list)
    fault: ProviderError | None = None

    @property
    def text(self) -> str:
        """The text that was shown."""
        return "".join(event.delta for event in self.events if isinstance(event, TextDelta))

    @property
    def thinking(self) -> str:
        """The thinking that was shown."""
        return "".join(event.delta for event in self.events if isinstance(event, ThinkingDelta))

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that were made."""
        return [event for event in self.events if isinstance(event, ToolCall)]

    @property
    def finishes(self) -> list[str]:
        """The reasons of all finishes: a good answer has one."""
        return [event.reason for event in self.events if isinstance(event, Finish)]


async def hear(provider: LLMProvider, asked: ModelRequest | None = None) -> Heard:
    """Ask and listen to the end. Raises `AssertionError` if there is none, or if an event is none of ours."""
    heard = Heard()
    try:
        await asyncio.wait_for(_listen(provider.stream(asked or request()), heard), PATIENCE_SECONDS)
    except ProviderError as fault:
        heard.fault = fault
    except asyncio.TimeoutError:
        raise AssertionError(f"no end after {PATIENCE_SECONDS:.0f} s, having heard {heard.events!r}") from None
    return heard


async def _listen(events: AsyncIterator[ModelEvent], heard: Heard) -> None:
    async for event in events:
        if not isinstance(event, KINDS):
            raise AssertionError(f"{event!r} is no model event")
        heard.events.append(event)


async def leave(events: AsyncIterator[ModelEvent]) -> None:
    """Leave an answer as a run does that was stopped."""
    if isinstance(events, AsyncGenerator):
        await events.aclose()


def said(heard: Heard) -> Spoken:
    """A whole answer as a value. Raises `AssertionError` if it is none."""
    if heard.fault is not None:
        raise AssertionError(f"the call failed: {heard.fault!r}")
    if len(heard.finishes) != 1 or not isinstance(heard.events[-1], Finish):
        raise AssertionError(f"an answer ends with one Finish, this one has {heard.finishes!r}: {heard.events!r}")
    usages = [event for event in heard.events if isinstance(event, Usage)]
    if len(usages) != 1:
        raise AssertionError(f"an answer has one Usage, this one {usages!r}")
    return Spoken(heard.text, heard.thinking, tuple(map(plain, heard.calls)), usages[0], heard.finishes[0])


def plain(call: ToolCall) -> ToolCall:
    """A call with its arguments in one form."""
    return ToolCall(call.id, call.name, json.dumps(json.loads(call.arguments_text), ensure_ascii=False, sort_keys=True))


def told(spoken: Spoken, counts: frozenset[str]) -> Spoken:
    """What must be heard of an answer by a dialect that tells only these counts."""
    kept = {name: getattr(spoken.usage, name) for name in Usage.__struct_fields__ if name in counts}
    return replace(spoken, calls=tuple(map(plain, spoken.calls)), usage=Usage(**kept))
