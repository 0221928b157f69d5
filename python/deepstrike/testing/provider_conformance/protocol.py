"""What holds for every provider, whatever it asks: the protocol of `LLMProvider` alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from deepstrike.providers.base import Finish, LLMProvider, ModelRequest, Provider, ToolCall
from deepstrike.testing.provider_conformance.hearing import Heard, hear, leave, request
from deepstrike.testing.trying import same
from deepstrike.wire.message import AssistantBlock, Text, UserBlock

MakePlain = Callable[[], LLMProvider]
"""Makes a new provider each time it is called, one that can answer any number of requests."""

_Body = Callable[[LLMProvider], Awaitable[None]]
_REASONS = frozenset({"stop", "tool_calls", "length", "content_filter", "other"})
_MANY = 20


@dataclass(frozen=True, slots=True)
class ProtocolCheck:
    """One promise of `LLMProvider`; `name` says it."""

    name: str
    _body: _Body

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakePlain) -> None:
        """Run the check on a provider from `make`. Raises `AssertionError` with what was found instead."""
        provider = make()
        try:
            await self._body(provider)
        finally:
            if isinstance(provider, Provider):
                await provider.aclose()


def _judge(heard: Heard) -> None:
    """An answer has one finish, which is last, and calls that have a name and arguments in JSON."""
    if heard.fault is not None:
        raise AssertionError(f"the call failed: {heard.fault!r}")
    same(len(heard.finishes), 1, f"finishes in {heard.events!r}")
    same(isinstance(heard.events[-1], Finish), True, f"the finish is last in {heard.events!r}")
    same(heard.finishes[0] in _REASONS, True, f"{heard.finishes[0]!r} is a known reason")
    for call in heard.calls if heard.finishes[0] == "tool_calls" else ():
        _judge_call(call)


def _judge_call(call: ToolCall) -> None:
    same(bool(call.name), True, f"the name of {call!r}")
    try:
        json.loads(call.arguments_text)
    except ValueError as fault:
        raise AssertionError(f"the arguments of {call!r} are not JSON: {fault}") from None


async def an_answer_ends_with_one_finish(provider: LLMProvider) -> None:
    """Every event is a model event, and nothing stands behind the finish."""
    _judge(await hear(provider))


async def a_request_is_left_as_it_was(provider: LLMProvider) -> None:
    """What is asked belongs to the run."""
    asked = request()
    before = _copied(asked)
    await hear(provider, asked)
    same(_copied(asked), before, "the request")


def _copied(asked: ModelRequest) -> tuple[object, ...]:
    return asked.system_stable, asked.system_knowledge, tuple(asked.turns), asked.tools, dict(asked.extensions)


async def a_conversation_goes_on(provider: LLMProvider) -> None:
    """The next request of a run has the turns of the last one at its beginning, and its memo."""
    first = request()
    heard = await hear(provider, first)
    _judge(heard)
    reply = AssistantBlock((Text(heard.text or "ok"),), "other", "other")
    turns = (*first.turns, reply, UserBlock((Text("and then?"),)))
    _judge(await hear(provider, msgspec.structs.replace(first, turns=turns)))


async def an_answer_can_be_left_at_any_event(provider: LLMProvider) -> None:
    """Closing the stream after any number of events raises nothing, and the next call is answered."""
    whole = await hear(provider)
    for count in range(len(whole.events) + 1):
        events = provider.stream(request())
        for _ in range(count):
            await anext(events, None)
        await leave(events)
    _judge(await hear(provider))


async def a_cancelled_call_ends_as_cancelled(provider: LLMProvider) -> None:
    """Cancellation is swallowed by nobody, at whatever step it comes."""
    for steps in range(8):
        task = asyncio.create_task(_listen(provider))
        for _ in range(steps):
            await asyncio.sleep(0)
        if not task.done() and task.cancel():
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            same(isinstance(outcome, asyncio.CancelledError), True, f"cancelled after {steps} steps, not {outcome!r}")
    _judge(await hear(provider))


async def _listen(provider: LLMProvider) -> None:
    async for _ in provider.stream(request()):
        pass


async def many_calls_at_once_are_answered(provider: LLMProvider) -> None:
    """Twenty calls of one provider."""
    for heard in await asyncio.gather(*(hear(provider) for _ in range(_MANY))):
        _judge(heard)


async def a_provider_serves_another_loop(provider: LLMProvider) -> None:
    """In a thread with a loop of its own, and here again."""
    _judge(await hear(provider))
    _judge(await asyncio.to_thread(lambda: asyncio.run(_heard_and_closed(provider))))
    _judge(await hear(provider))


async def _heard_and_closed(provider: LLMProvider) -> Heard:
    heard = await hear(provider)
    if isinstance(provider, Provider):
        await provider.aclose()
    return heard


PROTOCOL_CHECKS: list[ProtocolCheck] = [
    ProtocolCheck(body.__name__, body)
    for body in (
        an_answer_ends_with_one_finish,
        a_request_is_left_as_it_was,
        a_conversation_goes_on,
        an_answer_can_be_left_at_any_event,
        a_cancelled_call_ends_as_cancelled,
        many_calls_at_once_are_answered,
        a_provider_serves_another_loop,
    )
]
"""All checks of the protocol."""
