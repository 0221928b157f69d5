"""A whole call: tries, waits between them, the breaker, the limit on calls in flight."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.clock import current_clock
from deepstrike.errors import CircuitOpen, Overloaded, ProviderError, Stalled, Truncated, Unreachable
from deepstrike.providers.base import Finish
from deepstrike.providers.retry import NO_HINT, Refused, wait_before
from deepstrike.providers.transport.attempt import attempt
from deepstrike.stream import RetryEvent, ThinkingDelta
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from deepstrike.providers.base import ModelEvent
    from deepstrike.providers.dialects.base import Decoder, Reader
    from deepstrike.providers.transport.breaker import Gate
    from deepstrike.providers.transport.endpoint import Endpoint

# What may be repeated: the caller is told of the retry and forgets it.
_UNSEEN = (ThinkingDelta, Notice)
# Failures that speak against the endpoint; any other answer shows that it is there.
_ENDPOINT_FAILS = (Overloaded, Stalled, Truncated, Unreachable)


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask whom.

    `codec` makes reader and decoder of a try; `content_type` is that of a good answer; `notices` are told before it.
    """

    endpoint: Endpoint
    body: bytes
    codec: Callable[[], tuple[Reader, Decoder]]
    content_type: str = "text/event-stream"
    notices: tuple[Notice, ...] = ()


async def call(prepare: Callable[[], Question]) -> AsyncGenerator[ModelEvent, None]:
    """Ask until an answer comes or no retry is left. `prepare` is called when the first event is asked for.

    Yields the answer's events, a `RetryEvent` before each wait, and a `Notice` when this call changes the circuit
    breaker (`circuit_open`, `circuit_half_open`, `circuit_closed`). Only what nobody has seen is repeated: after text
    or a tool call the failure is raised. Raises a `ProviderError`; cancelled or closed, it lets go of its connection.
    """
    question = prepare()
    endpoint = question.endpoint
    for notice in question.notices:
        yield notice
    retry = 0
    while True:
        shown = False
        try:
            async with aclosing(_guarded(question)) as batches:
                async for batch in batches:
                    for event in batch:
                        shown = shown or type(event) not in _UNSEEN
                        yield event
            return
        except Refused as refused:
            fault, hint = refused.fault, refused.hint
        except ProviderError as failed:
            fault, hint = failed, NO_HINT
        wait = None if shown else wait_before(endpoint.retry, retry, fault, hint)
        if wait is None or endpoint.breaker.seconds_left() > wait:
            raise fault from None
        retry += 1
        yield RetryEvent(retry, round(wait * 1000), f"{fault.code}: {fault.message}")
        await current_clock().sleep(wait)


async def _guarded(question: Question) -> AsyncGenerator[list[ModelEvent], None]:
    """One try in its slot, its outcome told to the breaker. A change of the breaker is told as a `Notice`."""
    endpoint = question.endpoint
    if endpoint.slots is not None:
        await endpoint.slots.acquire()
    try:
        gate, told = _enter(endpoint), False
        try:
            if gate == "half_open":
                yield [_change(endpoint, gate)]
            reader, decoder = question.codec()
            tries = attempt(endpoint, question.body, reader, decoder, question.content_type)
            async with aclosing(tries) as batches:
                async for batch in batches:
                    if batch and type(batch[-1]) is Finish:
                        told = True
                        if endpoint.breaker.record_success():
                            batch.insert(-1, _change(endpoint, "closed"))
                    yield batch
        except (ProviderError, Refused) as failed:
            told = True
            if change := _tell(endpoint, failed.fault if isinstance(failed, Refused) else failed):
                yield [_change(endpoint, change)]
            raise
        finally:
            if not told:
                endpoint.breaker.release()
    finally:
        if endpoint.slots is not None:
            endpoint.slots.release()


def _enter(endpoint: Endpoint) -> Gate:
    gate = endpoint.breaker.enter()
    if gate == "open":
        raise CircuitOpen(
            f"{endpoint.faults.mask(endpoint.base_url)} failed repeatedly, so no request was sent; the next one is "
            f"let through in {endpoint.breaker.seconds_left():.0f} s"
        )
    return gate


def _tell(endpoint: Endpoint, fault: ProviderError) -> Gate | None:
    """Tell the breaker of a failure; what it became, if that changed it."""
    if isinstance(fault, _ENDPOINT_FAILS):
        return "open" if endpoint.breaker.record_failure() else None
    return "closed" if endpoint.breaker.record_success() else None


def _change(endpoint: Endpoint, gate: Gate) -> Notice:
    where = endpoint.faults.mask(endpoint.base_url)
    return Notice(f"circuit_{gate}", f"the circuit breaker of {where} {_CHANGES[gate]}")


_CHANGES: dict[Gate, str] = {
    "open": "opened after repeated failures: calls fail at once for a while",
    "half_open": "lets one call through to probe",
    "closed": "closed: the service answers again",
}
