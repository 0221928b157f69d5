"""Calls that are left before their end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.stream import TextDelta
from deepstrike.testing.provider_conformance.hearing import hear, leave, request, said
from deepstrike.testing.renderers.base import Spoken
from deepstrike.testing.trying import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from deepstrike.providers.base import LLMProvider, ModelEvent
    from deepstrike.testing.provider_conformance.trial import Bench, Body, Trial
    from deepstrike.testing.server import Raw

LET_GO_SECONDS = 10.0
"""How long a connection may take to close, also on a loaded machine."""


async def a_call_cancelled_in_mid_answer_lets_go_of_its_connection(bench: Bench) -> None:
    """The task ends as cancelled, the server sees the connection go, the provider answers the next call."""
    async with bench.trial(_endless(bench)) as trial:
        heard = asyncio.Event()
        task = asyncio.create_task(_listen(trial.provider, heard))
        await _first_text(heard, task)
        task.cancel()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        same(isinstance(outcome, asyncio.CancelledError), True, f"cancelled, not {outcome!r}")
        await _is_free(trial)


async def a_call_that_is_left_lets_go_of_its_connection(bench: Bench) -> None:
    """As above, for a stream that is closed after its first text."""
    async with bench.trial(_endless(bench)) as trial:
        events = trial.provider.stream(request())
        await _until_text(events)
        await leave(events)
        await _is_free(trial)


async def a_call_cancelled_before_its_answer_begins_lets_go_too(bench: Bench) -> None:
    """The headers have not come yet."""
    async with bench.trial(replace(bench.raw(), end="stall")) as trial:
        task = asyncio.create_task(_listen(trial.provider, asyncio.Event()))
        arrived = await asyncio.to_thread(trial.server.wait_until, lambda server: len(server.requests) == 1)
        same(arrived, True, "the request arrived")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await _is_free(trial)


def _endless(bench: Bench) -> Raw:
    return replace(bench.raw(*bench.renderer.answer(Spoken("some words")).opening), end="stall")


async def _listen(provider: LLMProvider, heard: asyncio.Event) -> None:
    async for event in provider.stream(request()):
        if isinstance(event, TextDelta):
            heard.set()


async def _until_text(events: AsyncIterator[ModelEvent]) -> None:
    async for event in events:
        if isinstance(event, TextDelta):
            return


async def _first_text(heard: asyncio.Event, task: asyncio.Task[None]) -> None:
    waiting = asyncio.create_task(heard.wait())
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    same(heard.is_set(), True, "a first text was heard")


async def _is_free(trial: Trial) -> None:
    gone = await asyncio.to_thread(trial.server.wait_until, lambda server: server.connections == 0, LET_GO_SECONDS)
    same(gone, True, "the connection was let go of")
    same(said(await hear(trial.provider)).text, "ok", "the next answer")


CHECKS: tuple[Body, ...] = (
    a_call_cancelled_in_mid_answer_lets_go_of_its_connection,
    a_call_that_is_left_lets_go_of_its_connection,
    a_call_cancelled_before_its_answer_begins_lets_go_too,
)
