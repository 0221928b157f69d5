"""Requests that are refused: what is tried again, when, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.testing.provider_conformance.hearing import hear, said
from deepstrike.testing.provider_conformance.trial import LATE, SOON
from deepstrike.testing.trying import same

if TYPE_CHECKING:
    from deepstrike.testing.provider_conformance.trial import Bench, Body
    from deepstrike.testing.renderers.base import Trouble
    from deepstrike.testing.server import Raw

_PASSING: tuple[Trouble, ...] = ("rate_limited", "overloaded", "failing")
_LASTING: tuple[Trouble, ...] = ("unauthorized", "quota_exhausted")
_CODES: dict[Trouble, str] = {"failing": "overloaded"}


async def what_may_pass_is_tried_again(bench: Bench) -> None:
    """Too many requests, an overload, a failure: twice, then the answer comes."""
    for trouble in _PASSING:
        refused = bench.refusal(trouble)
        if refused is not None:
            await _comes_at_the_third_try(bench, refused, trouble)


async def retries_come_to_an_end(bench: Bench) -> None:
    """After the last retry the failure is told, with its kind and status."""
    for trouble in _PASSING:
        refused = bench.refusal(trouble)
        if refused is None:
            continue
        async with bench.trial(*[refused] * 3, retry=SOON) as trial:
            heard = await hear(trial.provider)
            told = heard.fault and (heard.fault.code, heard.fault.status)
            same(told, (_CODES.get(trouble, trouble), refused.status), f"{trouble}: code and status")
            same(len(trial.server.requests), 3, f"{trouble}: requests")


async def what_lasts_is_not_tried_again(bench: Bench) -> None:
    """A wrong key and an empty account are told at once."""
    for trouble in _LASTING:
        refused = bench.refusal(trouble)
        if refused is None:
            continue
        async with bench.trial(refused, retry=SOON) as trial:
            heard = await hear(trial.provider)
            told = heard.fault and (heard.fault.code, heard.fault.retryable)
            same(told, (trouble, False), f"{trouble}: code and retryable")
            same(len(trial.server.requests), 1, f"{trouble}: requests")


async def the_services_own_wait_is_kept(bench: Bench) -> None:
    """`retry-after-ms` and `retry-after` instead of a minute of our own."""
    for hint in ({"retry_after_ms": "20"}, {"retry_after": "0.02"}, {"retry_after": "1", "retry_after_ms": "20"}):
        refused = bench.refusal("rate_limited", **hint)
        if refused is not None:
            async with bench.trial(refused, refused, retry=LATE) as trial:
                same(said(await hear(trial.provider)).text, "ok", f"the answer after {hint}")
                same(len(trial.server.requests), 3, f"requests after {hint}")


async def a_wait_of_an_hour_ends_the_call(bench: Bench) -> None:
    """Nobody is kept waiting that long: the refusal is told."""
    refused = bench.refusal("rate_limited", retry_after="3600")
    if refused is not None:
        async with bench.trial(refused, retry=SOON) as trial:
            heard = await hear(trial.provider)
            same(heard.fault and heard.fault.code, "rate_limited", "the failure")
            same(len(trial.server.requests), 1, "requests")


async def _comes_at_the_third_try(bench: Bench, refused: Raw, what: str) -> None:
    async with bench.trial(refused, refused, retry=SOON) as trial:
        same(said(await hear(trial.provider)).text, "ok", f"{what}: the answer")
        same(len(trial.server.requests), 3, f"{what}: requests")


CHECKS: tuple[Body, ...] = (
    what_may_pass_is_tried_again,
    retries_come_to_an_end,
    what_lasts_is_not_tried_again,
    the_services_own_wait_is_kept,
    a_wait_of_an_hour_ends_the_call,
)
