"""One try of a call: send, read, decode, under the time limits."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

from deepstrike.clock import current_clock
from deepstrike.errors import ProviderError, Truncated
from deepstrike.providers.faults import http_fault
from deepstrike.providers.retry import NO_HINT, Refused, read_hint
from deepstrike.providers.transport.watch import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from deepstrike.providers.base import ModelEvent
    from deepstrike.providers.dialects.base import Decoder, Reader
    from deepstrike.providers.transport.base import Answer
    from deepstrike.providers.transport.endpoint import Endpoint

# How long the end of the body is waited for behind the last event, to keep the connection.
_SETTLE_SECONDS = 0.1
_ERROR_BODY_BYTES = 64 * 1024
_WHOLE_BODY_BYTES = 32 * 1024 * 1024


async def attempt(
    endpoint: Endpoint, body: bytes, reader: Reader, decoder: Decoder, content_type: str
) -> AsyncGenerator[list[ModelEvent], None]:
    """Yield the events of one answer in batches, one for each read. Raises a `ProviderError` or `Refused`."""
    watch = Watch(endpoint.timeouts, current_clock(), _cancel_this_task())
    answer: Answer | None = None
    try:
        answer = await _open(endpoint, body, watch)
        if answer.status != 200 or not _is(answer, content_type):
            yield await _whole(endpoint, answer, decoder)
            return
        async with aclosing(_batches(answer, reader, decoder, watch)) as batches:
            async for batch in batches:
                yield batch
        await answer.settle(_SETTLE_SECONDS)
        yield decoder.end()
    except ProviderError as fault:
        if watch.fault is not None:
            raise watch.fault from None
        if answer is not None and fault.request_id is None:
            fault.request_id = answer.headers.get("x-request-id")
        raise
    finally:
        watch.stop()
        if answer is not None:
            answer.close()


async def _open(endpoint: Endpoint, body: bytes, watch: Watch) -> Answer:
    """Send the request. A limit that passes before the headers come cancels this task, which ends here as a fault."""
    try:
        answer = await endpoint.transport.post(body)
    except asyncio.CancelledError:
        if watch.fault is not None and _only_ours():
            raise watch.fault from None
        raise
    watch.interrupt_by(answer.close)
    return answer


def _only_ours() -> bool:
    """Take our own cancellation back; False if somebody else cancelled the task too (told from Python 3.11 on)."""
    task = asyncio.current_task()
    if sys.version_info >= (3, 11):
        return task is not None and task.uncancel() == 0
    return True


async def _batches(
    answer: Answer, reader: Reader, decoder: Decoder, watch: Watch
) -> AsyncGenerator[list[ModelEvent], None]:
    first = b""
    heard = False
    while data := await answer.read():
        payloads = reader.push(data)
        watch.heard(bool(payloads))
        if payloads:
            heard = True
            if batch := decoder.feed(payloads):
                yield batch
            if decoder.done:
                return
        elif not heard and len(first) < _ERROR_BODY_BYTES:
            first += data
        watch.wait()
    for payload in reader.close():
        heard = True
        if batch := decoder.feed_last(payload):
            yield batch
    if not heard and first:  # it calls itself an event stream and may hold plain JSON
        yield decoder.feed_whole(first) or []


async def _whole(endpoint: Endpoint, answer: Answer, decoder: Decoder) -> list[ModelEvent]:
    """The events of an answer that is one JSON object, though a stream was asked for; else raises what it says."""
    body = await _read_up_to(answer, _WHOLE_BODY_BYTES if answer.status == 200 else _ERROR_BODY_BYTES)
    if answer.status == 200 and (events := decoder.feed_whole(body)) is not None:
        return events + decoder.end()
    headers = answer.headers
    fault = http_fault(answer.status, headers.get("content-type", ""), body, headers.get("x-request-id"), endpoint.mask)
    raise Refused(fault, NO_HINT if answer.status == 200 else read_hint(headers, current_clock().now_ms()))


async def _read_up_to(answer: Answer, limit: int) -> bytes:
    body = bytearray()
    try:
        while len(body) < limit and (data := await answer.read()):
            body += data
    except Truncated:
        if answer.status == 200:
            raise
    return bytes(body)


def _is(answer: Answer, content_type: str) -> bool:
    return content_type in answer.headers.get("content-type", content_type).lower()


def _cancel_this_task() -> Callable[[], None]:
    task = asyncio.current_task()

    def cancel() -> None:
        if task is not None:
            task.cancel()

    return cancel
