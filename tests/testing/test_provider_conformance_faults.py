"""The conformance suite finds the faults that providers have had."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from deepstrike.errors import ProviderError, Unauthorized
from deepstrike.providers.base import Artefact, Finish, LLMProvider, ModelEvent, ModelRequest, Provider, ToolCall
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing.provider_conformance import (
    PROTOCOL_CHECKS,
    PROVIDER_CHECKS,
    ProtocolCheck,
    ProviderCheck,
    Service,
    check_protocol,
    check_provider,
)
from deepstrike.testing.renderers import CHAT, Rendered, Spoken
from deepstrike.testing.renderers.chat import ChatRenderer
from deepstrike.wire.message import Usage


class Own(Provider):
    """A provider of one's own, made of a good one."""

    def __init__(self, service: Service) -> None:
        self.key = service.key
        self.inner = OpenAIProvider(service.key, "any", api="chat", base_url=service.address, **service.options)
        self.info, self.dialect = self.inner.info, self.inner.dialect

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        async with aclosing(self.hear(request)) as events:
            async for event in events:
                yield event

    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        async for event in self.inner.stream(request):
            yield event

    async def aclose(self) -> None:
        await self.inner.aclose()

    def __repr__(self) -> str:
        return "Own()"


class TakesACutForAnEnd(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        try:
            async for event in self.inner.stream(request):
                yield event
        except ProviderError:
            yield Usage(1, 1)
            yield Finish("stop")


class TellsTheEndTwice(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        async for event in self.inner.stream(request):
            yield event
            if isinstance(event, Finish):
                yield event


class RepeatsWhatWasShown(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        try:
            async for event in self.inner.stream(request):
                yield event
        except ProviderError:
            async for event in self.inner.stream(request):
                yield event


class TriesAWrongKeyAgain(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        try:
            async for event in self.inner.stream(request):
                yield event
        except Unauthorized:
            async for event in self.inner.stream(request):
                yield event


class TellsTheKey(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        try:
            async for event in self.inner.stream(request):
                yield event
        except ProviderError as fault:
            logging.getLogger("own").warning("%s: %s", self.key, fault.message)
            raise


class HoldsOnToItsConnection(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        queue: asyncio.Queue[ModelEvent | None] = asyncio.Queue()

        async def fill() -> None:
            async for event in self.inner.stream(request):
                queue.put_nowait(event)
            queue.put_nowait(None)

        self.task = asyncio.create_task(fill())
        while (event := await queue.get()) is not None:
            yield event

    async def aclose(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await super().aclose()


class LosesCounts(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        async for event in self.inner.stream(request):
            yield Usage(event.input, event.output) if isinstance(event, Usage) else event


class MakesCallsOfACutAnswer(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        try:
            async for event in self.inner.stream(request):
                yield event
        except ProviderError:
            yield ToolCall("call_1", "get_weather", "{}")
            raise


class ShowsThinkingAsText(Own):
    async def hear(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        async for event in self.inner.stream(request):
            yield TextDelta(event.delta) if isinstance(event, ThinkingDelta) else event


CAUGHT = {
    TakesACutForAnEnd: "a_cut_answer_is_never_a_finished_one",
    TellsTheEndTwice: "an_answer_is_heard_as_it_was_said",
    RepeatsWhatWasShown: "nothing_shown_is_repeated",
    TriesAWrongKeyAgain: "what_lasts_is_not_tried_again",
    TellsTheKey: "a_key_that_comes_back_is_told_to_nobody",
    HoldsOnToItsConnection: "a_call_that_is_left_lets_go_of_its_connection",
    LosesCounts: "an_answer_is_heard_as_it_was_said",
    MakesCallsOfACutAnswer: "a_cut_answer_is_never_a_finished_one",
    ShowsThinkingAsText: "an_answer_is_heard_as_it_was_said",
}


def check_named(name: str) -> ProviderCheck:
    return next(check for check in PROVIDER_CHECKS if check.name == name)


@pytest.mark.parametrize(("broken", "name"), CAUGHT.items(), ids=lambda it: getattr(it, "__name__", it))
async def test_given_a_broken_provider_when_it_is_checked_then_its_fault_is_found(
    broken: type[Own], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepstrike.testing.provider_conformance.stopping.LET_GO_SECONDS", 0.5)
    await check_named(name).run(Own, CHAT)
    with pytest.raises(AssertionError):
        await check_named(name).run(broken, CHAT)


async def test_given_a_broken_provider_when_all_is_checked_then_the_failures_are_listed_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("an_answer_is_heard_as_it_was_said", "what_lasts_is_not_tried_again")
    monkeypatch.setattr(
        "deepstrike.testing.provider_conformance.PROVIDER_CHECKS", [check_named(name) for name in names]
    )
    await check_provider(Own, CHAT)
    with pytest.raises(AssertionError, match="1 of 2 checks failed") as caught:
        await check_provider(TriesAWrongKeyAgain, CHAT)
    assert re.findall(r"\n  (\w+):", str(caught.value)) == ["what_lasts_is_not_tried_again"]


class WithoutAnEndMarker(ChatRenderer):
    """A dialect of one's own: chat completions of a server that sends no `[DONE]` and has no comments."""

    comment = None

    def answer(self, spoken: Spoken) -> Rendered:
        rendered = super().answer(spoken)
        return replace(rendered, ending=rendered.ending[:-1])


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=str)
async def test_given_a_renderer_of_ones_own_when_a_provider_is_checked_then_it_is_held_to_that(
    check: ProviderCheck,
) -> None:
    await check.run(Own, WithoutAnEndMarker(comment=None))


class Plain:
    """A provider without HTTP."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for word in ("some ", "words"):
            await asyncio.sleep(0)
            yield TextDelta(word)
        yield Finish("stop")


class NeverFinishes:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("some words")


class GoesOnBehindItsEnd:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Finish("stop")
        yield Artefact("own", "{}")


class SwallowsCancellation:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        try:
            for _ in range(4):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            yield TextDelta("stopped")
        yield Finish("stop")


class ChangesTheRequest:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        request.extensions["seen"] = True  # type: ignore[index]
        yield Finish("stop")


class AnswersOnce:
    def __init__(self) -> None:
        self.busy = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if self.busy:
            raise ProviderError("busy")
        self.busy = True
        await asyncio.sleep(0)
        self.busy = False
        yield Finish("stop")


class WritesArgumentsAsPython:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ToolCall("call_1", "get_weather", "{'city': 'Oslo'}")
        yield Finish("tool_calls")


class SaysStrings:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield "some words"  # type: ignore[misc]
        yield Finish("stop")


BROKEN: dict[type[LLMProvider], str] = {
    NeverFinishes: "an_answer_ends_with_one_finish",
    GoesOnBehindItsEnd: "an_answer_ends_with_one_finish",
    SwallowsCancellation: "a_cancelled_call_ends_as_cancelled",
    ChangesTheRequest: "a_request_is_left_as_it_was",
    AnswersOnce: "many_calls_at_once_are_answered",
    WritesArgumentsAsPython: "an_answer_ends_with_one_finish",
    SaysStrings: "an_answer_ends_with_one_finish",
}


def protocol_check(name: str) -> ProtocolCheck:
    return next(check for check in PROTOCOL_CHECKS if check.name == name)


@pytest.mark.parametrize(("broken", "name"), BROKEN.items(), ids=lambda it: getattr(it, "__name__", it))
async def test_given_a_broken_provider_without_http_when_it_is_checked_then_its_fault_is_found(
    broken: type[LLMProvider], name: str
) -> None:
    await protocol_check(name).run(Plain)
    with pytest.raises(AssertionError):
        await protocol_check(name).run(broken)


async def test_given_a_provider_without_http_when_the_protocol_is_checked_then_all_failures_are_listed() -> None:
    await check_protocol(Plain)
    with pytest.raises(AssertionError, match="of 7 checks failed"):
        await check_protocol(NeverFinishes)
