"""Answers that break off, stand still or turn into an error: never a finished answer, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.providers.transport.base import Timeouts
from deepstrike.testing.provider_conformance.answers import ANSWERS
from deepstrike.testing.provider_conformance.hearing import Heard, hear, said, told
from deepstrike.testing.provider_conformance.trial import SOON
from deepstrike.testing.renderers.base import Spoken
from deepstrike.testing.trying import same

if TYPE_CHECKING:
    from deepstrike.testing.provider_conformance.trial import Bench, Body
    from deepstrike.testing.server import End

_WHOLE = ANSWERS["all of it"]
_ENDS: tuple[End, ...] = ("fin", "rst", "complete")
_SHORT = 0.4
_LONG = 15.0
_BEATS = 200


async def a_cut_answer_is_never_a_finished_one(bench: Bench) -> None:
    """At 25, 50, 75 and 99 % of what there is to say, by FIN, by RST and by a polite end of the body."""
    opening = b"".join(bench.renderer.answer(_WHOLE).opening)
    for percent in (25, 50, 75, 99):
        for end in _ENDS:
            cut = replace(bench.raw(opening[: len(opening) * percent // 100]), end=end)
            async with bench.trial(cut) as trial:
                _is_part_of(await hear(trial.provider), _WHOLE, f"cut at {percent} % by {end}")


async def an_answer_that_is_whole_outlives_its_connection(bench: Bench) -> None:
    """The connection breaks right behind the end: that is no failure."""
    rendered = bench.renderer.answer(_WHOLE)
    async with bench.trial(replace(bench.raw(*rendered.opening, *rendered.ending), end="fin")) as trial:
        same(said(await hear(trial.provider)), told(_WHOLE, bench.renderer.counts), "cut behind the end")


async def a_silent_service_stalls_within_the_limits(bench: Bench) -> None:
    """Nothing at all after the headers, and nothing more in mid-answer."""
    opening = bench.renderer.answer(Spoken("some words")).opening
    for what, writes, timeouts in (
        ("before the first event", (), Timeouts(first_event=_SHORT, idle=_LONG, progress=_LONG)),
        ("in mid-answer", opening, Timeouts(first_event=_LONG, idle=_SHORT, progress=_LONG)),
    ):
        async with bench.trial(replace(bench.raw(*writes), end="stall"), timeouts=timeouts) as trial:
            _ends_with(await hear(trial.provider), "stalled", f"silence {what}")


async def signs_of_life_are_no_progress(bench: Bench) -> None:
    """A stream that only keeps itself alive ends by `Timeouts.progress`."""
    comment = bench.renderer.comment
    if comment is None:
        return
    opening = bench.renderer.answer(Spoken("some words")).opening
    beats = [part for _ in range(_BEATS) for part in (_SHORT / 8, comment)]
    alive = replace(bench.raw(*opening, *beats), end="stall")
    async with bench.trial(alive, timeouts=Timeouts(first_event=_LONG, idle=_LONG, progress=_SHORT)) as trial:
        _ends_with(await hear(trial.provider), "stalled", "comments alone")


async def nothing_shown_is_repeated(bench: Bench) -> None:
    """After text was shown the failure is told, however many retries are left."""
    shown = bench.renderer.answer(Spoken("some words")).opening
    for end in _ENDS:
        async with bench.trial(replace(bench.raw(*shown), end=end), retry=SOON) as trial:
            _is_part_of(await hear(trial.provider), Spoken("some words"), f"cut by {end} after text")
            same(len(trial.server.requests), 1, "requests")


async def an_error_inside_an_answer_is_told(bench: Bench) -> None:
    """Status 200, some text, then an error object: its words are in the failure, and nothing is asked again."""
    shown = bench.renderer.answer(Spoken("some words")).opening
    broken = bench.raw(*shown, bench.renderer.failure("upstream fell over"))
    async with bench.trial(broken, retry=SOON) as trial:
        heard = await hear(trial.provider)
        _is_part_of(heard, Spoken("some words"), "an error behind text")
        same("upstream fell over" in str(heard.fault), True, f"its words in {heard.fault}")
        same(len(trial.server.requests), 1, "requests")


async def an_error_instead_of_an_answer_is_tried_again(bench: Bench) -> None:
    """Status 200 and an error object before anything was shown; a connection that closes without a byte."""
    for broken in (bench.raw(bench.renderer.failure("upstream fell over")), replace(bench.raw(), end="rst")):
        async with bench.trial(broken, retry=SOON) as trial:
            same(said(await hear(trial.provider)).text, "ok", "the answer to the second try")
            same(len(trial.server.requests), 2, "requests")


def _is_part_of(heard: Heard, spoken: Spoken, what: str) -> None:
    """Some of the answer and a failure, no finish, no call."""
    if heard.fault is None:
        raise AssertionError(f"{what}: no ProviderError, but {heard.events!r}")
    same((heard.finishes, heard.calls), ([], []), f"{what}: finishes and calls")
    same(spoken.text.startswith(heard.text), True, f"{what}: {heard.text!r} begins the text")
    same(spoken.thinking.startswith(heard.thinking), True, f"{what}: {heard.thinking!r} begins the thinking")


def _ends_with(heard: Heard, code: str, what: str) -> None:
    same((heard.fault and heard.fault.code, heard.finishes), (code, []), f"{what}: failure and finishes")


CHECKS: tuple[Body, ...] = (
    a_cut_answer_is_never_a_finished_one,
    an_answer_that_is_whole_outlives_its_connection,
    a_silent_service_stalls_within_the_limits,
    signs_of_life_are_no_progress,
    nothing_shown_is_repeated,
    an_error_inside_an_answer_is_told,
    an_error_instead_of_an_answer_is_tried_again,
)
