"""The events of a messages stream → model events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.base import Artefact, Finish, ModelEvent, ToolCall
from deepstrike.providers.dialects.mending import mended
from deepstrike.providers.dialects.messages.blocks import BOUNDARY, Block
from deepstrike.providers.dialects.messages.pause import PAUSED
from deepstrike.providers.dialects.messages.usage import UsageSoFar
from deepstrike.providers.dialects.messages.wire import (
    Delta,
    Message,
    StopDetails,
    StreamEvent,
    decode_event,
    decode_message,
    decode_opening,
    decode_stop_details,
    is_given,
)
from deepstrike.providers.dialects.reading import Reading, bad_stream
from deepstrike.providers.faults import ErrorBody
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.errors import ProviderError
    from deepstrike.providers.faults import Faults

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": PAUSED,
    "compaction": PAUSED,
}
_decode_error = msgspec.json.Decoder(ErrorBody).decode


class MessagesDecoder(Reading):
    """Reads one answer.

    `source` marks the artefacts, `names` maps wire names of tools back to their own. With `expose_reasoning` off no
    `ThinkingDelta` is made, what must be sent back is kept nevertheless. `signed` says that the service takes thinking
    back only with its signature. Calls and artefacts are given out before the next text, or at the end: until then a
    broken stream may be tried again, and no call of it is ever run.
    """

    __slots__ = ("_blocks", "_expose", "_last", "_names", "_pending", "_refusal", "_signed", "_source", "_usage")

    def __init__(
        self,
        source: str,
        names: Mapping[str, str],
        faults: Faults,
        *,
        expose_reasoning: bool = True,
        signed: bool = True,
    ) -> None:
        super().__init__(faults)
        self._source = source
        self._names = names
        self._expose = expose_reasoning
        self._signed = signed
        self._blocks: dict[int, Block] = {}
        self._last: Block | None = None
        self._pending: list[Block | Artefact] = []
        self._usage = UsageSoFar()
        self._refusal: Notice | None = None

    def feed_whole(self, body: bytes) -> list[ModelEvent] | None:
        """The events of a whole message; None for anything else."""
        try:
            message = decode_message(body)
            if message.type != "message" or message.content is None:
                return None
            return self._whole(message, message.content)
        except (msgspec.DecodeError, RecursionError):
            return None

    def end(self) -> list[ModelEvent]:
        """Calls, artefacts, usage and finish; raises what went wrong."""
        reason = self._reason("a stop reason")
        self._close_all()
        kept = self._taken()
        if self._damaged and any(isinstance(event, ToolCall | Artefact) for event in kept):
            raise bad_stream(", so its tool calls and thinking cannot be trusted")
        out: list[ModelEvent] = [self._refusal] if self._refusal is not None else kept
        usage = self._usage.total()
        if usage is not None:
            out.append(usage)
        out.append(Finish(reason))
        return out

    def _payload(self, payload: bytes, out: list[ModelEvent]) -> None:
        try:
            self._event(decode_event(payload), payload, out)
        except (msgspec.DecodeError, RecursionError) as fault:
            self._odd(payload, fault, out)

    def _event(self, event: StreamEvent, payload: bytes, out: list[ModelEvent]) -> None:
        kind = event.type
        if kind == "content_block_delta":
            if event.delta is not None:
                self._block_delta(event.index, event.delta, payload, out)
        elif kind == "content_block_start":
            self._open(event, out)
        elif kind == "content_block_stop":
            self._close(event.index)
        elif kind == "message_delta":
            self._usage.take(event.usage)
            if event.delta is not None:
                self._stop(event.delta.stop_reason, event.delta.stop_details)
        elif kind == "message_start":
            self._start(event, out)
        elif kind == "message_stop":
            self.done = True
        elif is_given(event.error):
            self._fail(self._told(event.error, payload))

    def _start(self, event: StreamEvent, out: list[ModelEvent]) -> None:
        try:
            message = decode_message(event.message)
        except msgspec.DecodeError:
            return  # nothing in it is needed
        self._usage.take(message.usage)
        self._transformed(message, out)

    def _transformed(self, message: Message, out: list[ModelEvent]) -> None:
        reasons = [one.reason or one.type for one in message.input_transformations or ()]
        if reasons:
            told = f"the service left out {len(reasons)} earlier thinking block(s): {', '.join(sorted(set(reasons)))}"
            out.append(Notice("artefact_dropped", told))

    def _open(self, event: StreamEvent, out: list[ModelEvent]) -> None:
        opening = decode_opening(event.content_block)
        block = Block(bytes(event.content_block), opening)
        if block.kind == "text" and self._last is not None and self._last.kind == "text":
            self._pending.append(Artefact(self._source, BOUNDARY))
        self._blocks[len(self._blocks) if event.index is None else event.index] = block
        self._last = block
        if opening.text:
            self._say(opening.text, out)
        if opening.thinking and self._expose:
            out.append(ThinkingDelta(opening.thinking))

    def _block_delta(self, index: int | None, delta: Delta, payload: bytes, out: list[ModelEvent]) -> None:
        block = self._at(index)
        if delta.text is not None and delta.type == "text_delta":
            if block is not None:
                block.add(delta.text)
            self._say(delta.text, out)
        elif block is None:
            self._damaged = True
        elif delta.thinking is not None:
            block.add(delta.thinking)
            if self._expose and delta.thinking:
                out.append(ThinkingDelta(delta.thinking))
        elif delta.signature is not None:
            block.sign(delta.signature)
        elif delta.partial_json is not None:
            block.add(delta.partial_json)
        else:
            block.add_odd(payload)

    def _at(self, index: int | None) -> Block | None:
        return self._last if index is None else self._blocks.get(index)

    def _say(self, text: str, out: list[ModelEvent]) -> None:
        if text:
            if self._pending:
                out += self._taken()
            out.append(TextDelta(text))

    def _taken(self) -> list[ModelEvent]:
        """What was closed and not yet given out."""
        pending, self._pending = self._pending, []
        cut = self._finish == "length"
        out: list[ModelEvent] = []
        for one in pending:
            if isinstance(one, Artefact):
                out.append(one)
            else:
                out += one.close(self._source, self._names, cut=cut, signed=self._signed)
        return out

    def _close(self, index: int | None) -> None:
        """Closed twice, a block is given out once: what is closed is no longer at its index."""
        if index is None:
            index = next((at for at, block in self._blocks.items() if block is self._last), -1)
        block = self._blocks.pop(index, None)
        if block is not None:
            self._pending.append(block)

    def _close_all(self) -> None:
        for index in sorted(self._blocks):
            self._close(index)

    def _stop(self, reason: str | None, details: msgspec.Raw) -> None:
        if reason is None or self._finish is not None:
            return
        self._finish = FINISH.get(reason, "other")
        if reason == "refusal":
            self._refusal = Notice("refused", f"the model declined to answer ({_why(details)})")

    def _told(self, error: msgspec.Raw, payload: bytes) -> ProviderError:
        try:
            found = _decode_error(error)
        except msgspec.DecodeError:
            return self._faults.stream(payload)
        told = ": ".join(word for word in (found.type, found.message) if word) or "no message"
        return self._faults.told(msgspec.structs.replace(found, message=told))

    def _whole(self, message: Message, content: Sequence[msgspec.Raw]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        self._transformed(message, out)
        for index, raw in enumerate(content):
            self._open(StreamEvent(index=index, content_block=raw), out)
            self._close(index)
        self._usage.take(message.usage)
        self._stop(message.stop_reason, message.stop_details)
        return out

    def _odd(self, payload: bytes, fault: Exception, out: list[ModelEvent]) -> None:
        text = payload.strip()
        if text == b"[DONE]":  # gateways end every stream so
            self.done = True
        elif text and not self._event_mended(text, out):
            self._damaged = True
            self._pass_over(text, fault, "no event")

    def _event_mended(self, text: bytes, out: list[ModelEvent]) -> bool:
        """Whether the event could be read after all, or is of a kind that nothing depends on."""
        strict = mended(text)
        if strict is None:
            return False
        try:
            self._event(decode_event(strict), strict, out)
        except (msgspec.DecodeError, RecursionError):
            return b'"content_block' not in strict and b'"message_delta"' not in strict
        return True


def _why(details: msgspec.Raw) -> str:
    """The words of a refusal."""
    try:
        told = decode_stop_details(details)
    except msgspec.DecodeError:
        told = StopDetails()
    return ": ".join(word for word in (told.category, told.explanation) if word) or "no reason given"
