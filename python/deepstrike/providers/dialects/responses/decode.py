"""Responses events → model events.

Text streams; everything else is kept back until text follows it or the answer ends, so that an answer that breaks off
before its first word can be asked for again and no call of a cut answer runs. Sources: the vendor's event reference and
recorded traffic. `response.output_item.done` has the last word on an item: some servers send nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.errors import Overloaded
from deepstrike.providers.base import Finish, ModelEvent
from deepstrike.providers.dialects.reading import Reading, bad_stream
from deepstrike.providers.dialects.responses.kept import KeptItems
from deepstrike.providers.dialects.responses.wire import (
    Event,
    Response,
    decode_event,
    decode_response,
    is_given,
    mend,
    read_item,
    read_usage,
)
from deepstrike.stream import TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.faults import Faults
    from deepstrike.wire.message import Usage

_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THINKING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ARGUMENTS = "response.function_call_arguments.delta"
_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ERROR = "error"
_CUT = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ResponsesDecoder(Reading):
    """Reads one answer.

    `names` maps wire names of tools back to their own, `faults` makes the exceptions, `source` is written into the
    artefacts. With `expose_reasoning` off no `ThinkingDelta` is made.
    """

    __slots__ = ("_expose", "_kept", "_usage")

    def __init__(self, names: Mapping[str, str], faults: Faults, source: str, *, expose_reasoning: bool = True) -> None:
        super().__init__(faults)
        self._expose = expose_reasoning
        self._kept = KeptItems(names, source, expose=expose_reasoning)
        self._usage: Usage | None = None

    def feed_last(self, payload: bytes) -> list[ModelEvent]:
        """As `feed`, unless the payload is not whole."""
        return [] if mend(payload) is None else self.feed([payload])

    def feed_whole(self, body: bytes) -> list[ModelEvent] | None:
        """The events of a `response` object; None for anything else."""
        text = mend(body)
        try:
            response = None if text is None else decode_response(text)
        except msgspec.DecodeError:
            return None
        if text is None or response is None or response.object != "response":
            return None
        out: list[ModelEvent] = []
        self._end(response, text, out)
        return out

    def end(self) -> list[ModelEvent]:
        """What was kept back, usage and finish; raises what went wrong."""
        reason = self._reason("its last event")
        if self._kept.damaged:
            raise bad_stream(", so its tool calls cannot be trusted")
        out = self._kept.rest(cut=reason == "length")
        if self._usage is not None:
            out.append(self._usage)
        out.append(Finish(reason))
        return out

    def _payload(self, payload: bytes, out: list[ModelEvent]) -> None:
        try:
            event = decode_event(payload)
        except (msgspec.DecodeError, RecursionError) as fault:
            self._odd(payload, fault, out)
        else:
            self._event(event, payload, out)

    def _event(self, event: Event, payload: bytes, out: list[ModelEvent]) -> None:
        kind = event.type
        if kind in _TEXT:
            self._say(event, out)
        elif kind == _ARGUMENTS:
            if isinstance(event.delta, str):
                self._kept.open.add(event, event.delta)
        elif kind in _THINKING:
            self._think(event, out)
        elif kind == _ADDED:
            self._kept.open.begin(event, read_item(bytes(event.item)))
        elif kind == _DONE:
            self._kept.take(bytes(event.item), self._kept.open.end(event), out)
        elif kind in _ENDS:
            self._last(event, out)
        elif kind == _ERROR:
            self._fail(self._faults.stream(payload))

    def _say(self, event: Event, out: list[ModelEvent]) -> None:
        text = event.delta
        if isinstance(text, str) and text:
            self._kept.release(out)
            self._kept.open.add(event, text)
            out.append(TextDelta(text))

    def _think(self, event: Event, out: list[ModelEvent]) -> None:
        text = event.delta
        if isinstance(text, str) and text:
            gap = self._kept.open.think(event)
            if self._expose:
                out.append(ThinkingDelta(gap + text))

    def _last(self, event: Event, out: list[ModelEvent]) -> None:
        raw = bytes(event.response)
        try:
            response = decode_response(raw) if is_given(event.response) else Response()
        except msgspec.DecodeError:
            response = Response()  # the event itself says how the answer ended
        if event.type != "response.completed":
            response.status = event.type.removeprefix("response.")
        self._end(response, raw, out)

    def _end(self, response: Response, raw: bytes, out: list[ModelEvent]) -> None:
        """The answer is over. Items that the stream lost stand in the whole response."""
        self.done = True
        if is_given(response.error):
            self._fail(self._faults.stream(raw))
        elif response.status in ("failed", "cancelled"):
            self._fail(Overloaded(f"the service broke off its answer (status {response.status!r}); ask again later"))
        else:
            self._kept.recover(response.output or (), out)
            self._kept.close(cut=response.status == "incomplete")
            self._usage = read_usage(bytes(response.usage))
            self._finish = self._ended(response)

    def _ended(self, response: Response) -> str:
        if response.status == "incomplete":
            details = response.incomplete_details
            return _CUT.get(details.reason or "" if details else "", "other")
        return "tool_calls" if self._kept.calls else "stop"

    def _odd(self, payload: bytes, fault: Exception, out: list[ModelEvent]) -> None:
        text = payload.strip()
        if not text or text == b"[DONE]":  # not of this wire, but sent by servers that speak both
            return
        mended = mend(text)
        try:
            event = None if mended is None else decode_event(mended)
        except (msgspec.DecodeError, RecursionError):
            event = None
        if mended is not None and event is not None:
            self._event(event, mended, out)
            return
        self._kept.damaged = self._kept.damaged or mended is None or mended.startswith(b"{")
        self._pass_over(text, fault, "not an event of a response")
