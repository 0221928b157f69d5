"""Gemini's events → model events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.base import Artefact, Finish, ModelEvent, ToolCall
from deepstrike.providers.dialects.gemini.finish import failure_of, finish_of
from deepstrike.providers.dialects.gemini.usage import read_usage
from deepstrike.providers.dialects.gemini.wire import (
    ABSENT,
    Candidate,
    Chunk,
    Part,
    decode_chunk,
    decode_chunks,
    is_given,
)
from deepstrike.providers.dialects.mending import mended
from deepstrike.providers.dialects.reading import Reading, bad_stream
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.dialects.gemini.wire import Feedback, FunctionCall
    from deepstrike.providers.faults import Faults

_NO_SIGNATURE = ("", "null", '""')
_NO_ANSWER = (b"", b"[DONE]")  # gateways end with a word of their own


class GeminiDecoder(Reading):
    """Reads one answer.

    `names` maps wire names of tools back to their own; `source` is the dialect of the artefacts, which hold the thought
    signatures (see `Mark`). What stands behind a call is kept back with it until the end, so that order survives.
    """

    __slots__ = ("_calls", "_counts", "_expose", "_held", "_names", "_notice", "_source")

    def __init__(self, names: Mapping[str, str], faults: Faults, source: str, *, expose_reasoning: bool = True) -> None:
        super().__init__(faults)
        self._names = names
        self._source = source
        self._expose = expose_reasoning
        self._calls = False
        self._held: list[ModelEvent] = []
        self._notice: Notice | None = None
        self._counts = ABSENT

    def feed_whole(self, body: bytes) -> list[ModelEvent] | None:
        """The events of one answer object, or of the list of them that comes without `alt=sse`; None for others."""
        chunks = _chunks(body)
        if not chunks or not any(map(_says_something, chunks)):
            return None
        out: list[ModelEvent] = []
        for chunk in chunks:
            self._chunk(chunk, body, out)
        return out

    def end(self) -> list[ModelEvent]:
        """Calls, usage, what there is to tell, and the finish; raises what went wrong."""
        reason = self._reason("a finish reason")
        if self._damaged:
            raise bad_stream("")
        if self._calls and reason == "stop":
            reason = "tool_calls"
        tail: list[ModelEvent | None] = [*self._held, read_usage(bytes(self._counts)), self._notice]
        return [*(event for event in tail if event is not None), Finish(reason)]

    def _payload(self, payload: bytes, out: list[ModelEvent]) -> None:
        chunk = self._read(payload)
        if chunk is not None:
            self._chunk(chunk, payload, out)

    def _read(self, payload: bytes) -> Chunk | None:
        try:
            return decode_chunk(payload)
        except (msgspec.DecodeError, RecursionError) as fault:
            return None if payload.strip() in _NO_ANSWER else self._read_again(payload, fault)

    def _read_again(self, payload: bytes, fault: Exception) -> Chunk | None:
        again = mended(payload)
        try:
            if again is not None:
                return decode_chunk(again)
        except (msgspec.DecodeError, RecursionError):
            pass  # told below, with what was wrong at first
        self._damaged = True
        self._pass_over(payload, fault, "no answer")
        return None

    def _chunk(self, chunk: Chunk, payload: bytes, out: list[ModelEvent]) -> None:
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._candidate(candidate, out)
        if chunk.usage_metadata and is_given(chunk.usage_metadata):
            self._counts = chunk.usage_metadata
        if chunk.prompt_feedback is not None:
            self._feedback(chunk.prompt_feedback)
        if chunk.error and is_given(chunk.error):
            self._fail(self._faults.stream(payload))

    def _candidate(self, candidate: Candidate, out: list[ModelEvent]) -> None:
        if self._finish is not None:
            return  # what stands behind the end is none of this answer
        content = candidate.content
        for part in (content.parts if content is not None else None) or ():
            self._part(part, out)
        if candidate.finish_reason:
            self._end(candidate.finish_reason, candidate.finish_message)

    def _part(self, part: Part, out: list[ModelEvent]) -> None:
        text, shown = part.text or "", not part.thought or self._expose
        if text and shown:
            self._say(ThinkingDelta(text) if part.thought else TextDelta(text), out)
        if part.function_call is not None:
            self._call(part.function_call, part.thought_signature)
        elif part.thought_signature:
            self._sign("thought" if part.thought else "text", part.thought_signature, len(text) if shown else 0)

    def _say(self, event: ModelEvent, out: list[ModelEvent]) -> None:
        """Show it, behind what was held back before it; behind a call everything is held back."""
        if self._calls:
            self._held.append(event)
        else:
            out.extend(self._held)
            self._held.clear()
            out.append(event)

    def _sign(self, on: str, signature: msgspec.Raw, chars: int = 0) -> None:
        """Keep a signature as it came; it is handed out behind its text, in front of the next one."""
        text = bytes(signature).decode("utf-8", "replace")
        if text not in _NO_SIGNATURE:
            mark = f'{{"on":"{on}","chars":{chars},"signature":{text}}}'
            self._held.append(Artefact(self._source, mark))

    def _call(self, call: FunctionCall, signature: msgspec.Raw) -> None:
        self._calls = True
        self._sign("call", signature)
        name = call.name or ""
        arguments = bytes(call.args).decode("utf-8", "replace") if is_given(call.args) else "{}"
        self._held.append(ToolCall(call.id or "", self._names.get(name, name), arguments))

    def _end(self, reason: str, message: str | None) -> None:
        if reason == "FINISH_REASON_UNSPECIFIED":
            return
        if (fault := failure_of(reason, message, self._faults.mask)) is not None:
            self._fail(fault)
        elif self._finish is None:
            self._finish = finish_of(reason)
            if self._finish == "content_filter":
                self._filtered("its answer", reason, message)

    def _feedback(self, feedback: Feedback) -> None:
        reason = feedback.block_reason
        if reason and reason != "BLOCK_REASON_UNSPECIFIED" and self._finish is None:
            self._finish = "content_filter"
            self._filtered("the prompt", reason, feedback.block_reason_message)

    def _filtered(self, what: str, reason: str, message: str | None) -> None:
        said = f"{reason}: {self._faults.mask(message)}" if message else reason
        self._notice = Notice("content_filter", f"the service stopped {what} ({said})")


def _chunks(body: bytes) -> list[Chunk]:
    try:
        return decode_chunks(body) if body.lstrip()[:1] == b"[" else [decode_chunk(body)]
    except (msgspec.DecodeError, RecursionError):
        again = mended(body)
        return _chunks(again) if again is not None and again != body else []


def _says_something(chunk: Chunk) -> bool:
    return bool(chunk.candidates) or chunk.prompt_feedback is not None or is_given(chunk.error)
