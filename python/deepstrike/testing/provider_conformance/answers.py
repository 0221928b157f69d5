"""Good answers, however their bytes come."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from deepstrike.providers.base import LLMProvider, Provider, ToolCall
from deepstrike.testing.provider_conformance.hearing import Heard, hear, said, told
from deepstrike.testing.renderers.base import Spoken
from deepstrike.testing.trying import same
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.testing.provider_conformance.trial import Bench, Body

_COUNTED = Usage(input=120, output=40, cached=30, cache_write=20, reasoning=10)
# Characters of two, three and four bytes, and a line separator that only JSON takes for an ordinary one.
_TEXT = "Grüße, 你好 🦀!\u2028Ende."
_OSLO = ToolCall("call_1", "get_weather", '{"city": "Tromsø"}')
_KYOTO = ToolCall("call_2", "get_time", '{"city": "京都", "note": "a \\"quoted\\" word"}')
ANSWERS = {
    "a text": Spoken(_TEXT, usage=_COUNTED),
    "thinking, then a text": Spoken(_TEXT, "Erst 考えて …", usage=_COUNTED),
    "a call": Spoken(calls=(_OSLO,), usage=_COUNTED, finish="tool_calls"),
    "all of it": Spoken(_TEXT, "Hm.", (_OSLO, _KYOTO), _COUNTED, "tool_calls"),
    "a text cut by the output limit": Spoken(_TEXT, usage=_COUNTED, finish="length"),
}
_MANY = 20
_SEEDS = range(3)


async def an_answer_is_heard_as_it_was_said(bench: Bench) -> None:
    """Text, thinking, calls, usage and finish, event by event."""
    for name, spoken in ANSWERS.items():
        async with bench.trial(bench.whole(spoken)) as trial:
            same(said(await hear(trial.provider)), told(spoken, bench.renderer.counts), name)


async def the_cuts_between_bytes_do_not_matter(bench: Bench) -> None:
    """One byte a write, which also cuts inside characters, and pieces of random sizes."""
    spoken = ANSWERS["all of it"]
    body = b"".join(_events(bench, spoken))
    for pieces in _cuts(body):
        async with bench.trial(bench.raw(*pieces)) as trial:
            same(said(await hear(trial.provider)), told(spoken, bench.renderer.counts), f"in {len(pieces)} pieces")


async def what_says_nothing_changes_nothing(bench: Bench) -> None:
    """Comments, or what else keeps a stream alive, between all events."""
    comment = bench.renderer.comment
    if comment is None:
        return
    spoken = ANSWERS["all of it"]
    writes = [comment + event for event in _events(bench, spoken)]
    async with bench.trial(bench.raw(*writes)) as trial:
        same(said(await hear(trial.provider)), told(spoken, bench.renderer.counts), "with comments")


async def an_end_told_twice_is_one_end(bench: Bench) -> None:
    """Finish and usage come again: neither is told twice, and counts are not added up."""
    spoken = ANSWERS["all of it"]
    rendered = bench.renderer.answer(spoken)
    doubled = [event for event in rendered.ending for _ in range(2)]
    async with bench.trial(bench.raw(*rendered.opening, *doubled)) as trial:
        same(said(await hear(trial.provider)), told(spoken, bench.renderer.counts), "with the end twice")


async def answers_at_once_stay_apart(bench: Bench) -> None:
    """Twenty calls of one provider, each with an answer of its own."""
    spoken = [Spoken(f"answer {number}", usage=Usage(100 + number, 5)) for number in range(_MANY)]
    async with bench.trial(*map(bench.whole, spoken)) as trial:
        heard = await asyncio.gather(*(hear(trial.provider) for _ in spoken))
        same(len(trial.server.requests), _MANY, "requests")
    found = sorted(map(said, heard), key=_by_input)
    same(found, [told(one, bench.renderer.counts) for one in spoken], "the answers")


async def a_provider_serves_one_loop_after_another(bench: Bench) -> None:
    """The same object, in a thread with a loop of its own, and here again."""
    async with bench.trial() as trial:
        heard = [await hear(trial.provider), await asyncio.to_thread(_in_a_loop_of_its_own, trial.provider)]
        heard.append(await hear(trial.provider))
        same([said(one).text for one in heard], ["ok"] * 3, "the answers")


def _in_a_loop_of_its_own(provider: LLMProvider) -> Heard:
    return asyncio.run(_heard_and_closed(provider))


async def _heard_and_closed(provider: LLMProvider) -> Heard:
    heard = await hear(provider)
    if isinstance(provider, Provider):
        await provider.aclose()
    return heard


def _by_input(spoken: Spoken) -> int:
    return spoken.usage.input


def _events(bench: Bench, spoken: Spoken) -> tuple[bytes, ...]:
    rendered = bench.renderer.answer(spoken)
    return rendered.opening + rendered.ending


def _cuts(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    yield [body[at : at + 1] for at in range(len(body))]
    for seed in _SEEDS:
        chance, pieces, start = random.Random(seed), [], 0
        while start < len(body):
            end = start + chance.randint(1, 60)
            pieces.append(body[start:end])
            start = end
        yield pieces


CHECKS: tuple[Body, ...] = (
    an_answer_is_heard_as_it_was_said,
    the_cuts_between_bytes_do_not_matter,
    what_says_nothing_changes_nothing,
    an_end_told_twice_is_one_end,
    answers_at_once_stay_apart,
    a_provider_serves_one_loop_after_another,
)
