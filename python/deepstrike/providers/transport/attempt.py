"""One try of a call: send, read, decode, under the time limits."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.clock import current_clock
from deepstrike.errors import ProviderError, Truncated
from deepstrike.providers.retry import NO_HINT, Refused, read_hint
from deepstrike.providers.transport.beginning import begins_as_stream
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
_DOCUMENTS = ("json", "html", "xml")
_NO_STREAM_BEGINS_SO = (b"{", b"[", b"<")


async def attempt(
    endpoint: Endpoint, body: bytes, reader: Reader, decoder: Decoder, content_type: str
) -> AsyncGenerator[list[ModelEvent], None]:
    """Yield the events of one answer in batches, one for each read. Raises a `ProviderError` or `Refused`."""
    watch = Watch(endpoint.timeouts, current_clock(), _cancel_this_task())
    answer: Answer | None = None
    try:
        answer = await _open(endpoint, body, watch)
        whole = answer.status != 200 or _is_whole(answer, content_type)
        if whole and answer.status == 200:
            framed, answer = await begins_as_stream(answer)
            whole = not framed
        if whole:
            yield _answer_in(await _document(answer), endpoint, answer, decoder)
            return
        unframed = bytearray()
        async with aclosing(_batches(answer, reader, decoder, watch, unframed)) as batches:
            async for batch in batches:
                yield batch
        if unframed.lstrip()[:1] in _NO_STREAM_BEGINS_SO:
            yield _answer_in(bytes(unframed), endpoint, answer, decoder)
            return
        await answer.settle(_SETTLE_SECONDS)
        yield decoder.end()
    except ProviderError as fault:
        if watch.fault is not None:
            raise watch.fault from None
        if answer is not None and fault.request_id is None:
            fault.request_id = _request_id(endpoint, answer)
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
    answer: Answer, reader: Reader, decoder: Decoder, watch: Watch, unframed: bytearray
) -> AsyncGenerator[list[ModelEvent], None]:
    """The events as they come. `unframed` gets the body's beginning for as long as there is no event in it."""
    heard = False
    while (data := await _next(answer)) and not isinstance(data, Truncated):
        payloads = reader.push(data)
        watch.heard(bool(payloads))
        if payloads:
            heard = True
            if batch := decoder.feed(payloads):
                yield batch
            if decoder.done:
                break
        elif not heard and len(unframed) < _ERROR_BODY_BYTES:
            unframed += data
        watch.wait()
    # The last event may be whole although the blank line behind it, or the end of the body, never came.
    payloads = reader.close()
    tail = [event for payload in payloads for event in decoder.feed_last(payload)]
    if isinstance(data, Truncated) and not (decoder.finished or decoder.done):
        raise data
    if tail:
        yield tail
    if heard or payloads:
        unframed.clear()


async def _next(answer: Answer) -> bytes | Truncated:
    """The next bytes, or how the connection broke: what came before it may still be a whole answer."""
    try:
        return await answer.read()
    except Truncated as fault:
        return fault


def _answer_in(body: bytes, endpoint: Endpoint, answer: Answer, decoder: Decoder) -> list[ModelEvent]:
    """The events of an answer that is one JSON object, though a stream was asked for; else raises what it says."""
    if answer.status == 200 and (events := decoder.feed_whole(body)) is not None:
        return events + decoder.end()
    headers = answer.headers
    kind = headers.get("content-type", "")
    fault, wait = endpoint.faults.http(
        answer.status, kind, body, _request_id(endpoint, answer), target=headers.get("location"), url=endpoint.base_url
    )
    hint = NO_HINT if answer.status == 200 else read_hint(headers, current_clock().now_ms())
    raise Refused(fault, hint if wait is None or hint.wait is not None else replace(hint, wait=wait))


def _request_id(endpoint: Endpoint, answer: Answer) -> str | None:
    """The service's name for this exchange; a server that echoes headers may have put anything into it."""
    told = answer.headers.get("x-request-id") or answer.headers.get("request-id")
    return endpoint.faults.mask(told) if told else None


async def _document(answer: Answer) -> bytes:
    """The body, or the beginning of one too long; of an error answer also what came of one that broke off."""
    body = bytearray()
    limit = _WHOLE_BODY_BYTES if answer.status == 200 else _ERROR_BODY_BYTES
    try:
        while len(body) < limit and (data := await answer.read()):
            body += data
    except Truncated:
        if answer.status == 200:
            raise
    return bytes(body)


def _is_whole(answer: Answer, content_type: str) -> bool:
    """The answer names itself a document, though it may begin otherwise. Any other wrong name is forgiven anyway."""
    given = answer.headers.get("content-type", content_type).lower()
    return content_type not in given and any(kind in given for kind in _DOCUMENTS)


def _cancel_this_task() -> Callable[[], None]:
    task = asyncio.current_task()

    def cancel() -> None:
        if task is not None:
            task.cancel()

    return cancel
