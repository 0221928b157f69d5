"""Chat completion chunks → model events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.errors import Overloaded
from deepstrike.providers.base import Finish, ModelEvent
from deepstrike.providers.dialects.chat.calls import CallPieces
from deepstrike.providers.dialects.chat.dialect import NEVER
from deepstrike.providers.dialects.chat.mend import mend
from deepstrike.providers.dialects.chat.speech import Speech
from deepstrike.providers.dialects.chat.usage import read_usage
from deepstrike.providers.dialects.chat.wire import ABSENT, Choice, Chunk, Delta, decode_chunk, is_given
from deepstrike.providers.dialects.reading import Reading, bad_stream
from deepstrike.providers.faults import ErrorBody

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.dialects.chat.dialect import Replay
    from deepstrike.providers.faults import Faults
    from deepstrike.wire.message import Usage

# Ours for every word that a service of this dialect is known to say (wire reference, 10.3).
FINISH = {
    "stop": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
_FAILED = frozenset({"error", "insufficient_system_resource", "network_error"})


class ChatDecoder(Reading):
    """Reads one answer.

    `names` maps wire names of tools back to their own. `reasoning_in_output` says how the service counts. `faults`
    makes the exceptions. The rest is as in `Speech`.
    """

    __slots__ = ("_calls", "_mended", "_names", "_reasoning_in_output", "_speech", "_usage")

    def __init__(
        self,
        names: Mapping[str, str],
        faults: Faults,
        *,
        reasoning_in_output: bool = True,
        expose_reasoning: bool = True,
        split_think: bool = False,
        replay: Replay = NEVER,
        source: str = "",
    ) -> None:
        super().__init__(faults)
        self._names = names
        self._reasoning_in_output = reasoning_in_output
        self._calls = CallPieces()
        self._mended = False
        self._speech = Speech(replay, source, expose=expose_reasoning, split_think=split_think)
        self._usage: Usage | None = None

    def feed_last(self, payload: bytes) -> list[ModelEvent]:
        """As `feed`, unless the payload is not whole."""
        if payload.strip() != b"[DONE]" and mend(payload) is None:
            return []
        return self.feed([payload])

    def feed_whole(self, body: bytes) -> list[ModelEvent] | None:
        """The events of a `chat.completion` object; None for anything else."""
        try:
            chunk = decode_chunk(body)
        except (msgspec.DecodeError, RecursionError):
            mended = mend(body)
            if mended is None:
                return None
            chunk, body = mended.chunk, mended.payload
        failed = chunk.base_resp is not None and chunk.base_resp.status_code
        if not chunk.choices and not failed and not is_given(chunk.error):
            return None
        out: list[ModelEvent] = []
        self._chunk(chunk, body, out)
        return out

    def end(self) -> list[ModelEvent]:
        """Calls, usage and finish; raises what went wrong."""
        reason = self._reason("a finish reason")
        if self._lost_calls():
            raise bad_stream(", so its tool calls cannot be trusted")
        out = self._speech.close()
        out += self._calls.finish(reason == "length", self._names)
        if self._usage is not None:
            out.append(self._usage)
        out.append(Finish(reason))
        return out

    def _payload(self, payload: bytes, out: list[ModelEvent]) -> None:
        try:
            chunk = decode_chunk(payload)
        except (msgspec.DecodeError, RecursionError) as fault:
            self._odd(payload, fault, out)
        else:
            self._chunk(chunk, payload, out)

    def _lost_calls(self) -> bool:
        """A piece of a call may stand in what could not be read; where calls are told of and none came, it does."""
        if self._calls:
            return self._damaged
        return self._finish == "tool_calls" and (self._damaged or self._mended)

    def _chunk(self, chunk: Chunk, payload: bytes, out: list[ModelEvent]) -> None:
        if chunk.error is not ABSENT and is_given(chunk.error):  # it says more than the finish reason beside it
            self._fail(self._faults.stream(payload))
        for choice in chunk.choices or ():
            if not choice.index:  # with n > 1 the other answers are interleaved; only the first is ours
                self._choice(choice, out)
        if chunk.usage:
            self._count(chunk.usage)
        if chunk.base_resp is not None or chunk.x_groq is not None:
            self._beside(chunk)

    def _beside(self, chunk: Chunk) -> None:
        """What single vendors put next to the answer."""
        outcome, aside = chunk.base_resp, chunk.x_groq
        if outcome is not None and outcome.status_code:
            self._fail(self._faults.told(ErrorBody(outcome.status_msg, code=float(outcome.status_code))))
        if aside is not None:
            self._count(aside.usage)
            if is_given(aside.error):
                self._fail(self._faults.stream(b'{"error":%b}' % bytes(aside.error)))

    def _choice(self, choice: Choice, out: list[ModelEvent]) -> None:
        delta = choice.delta
        if delta is not None:
            self._delta(delta, out)
        elif choice.message is not None:
            self._message(choice.message, out)
        if choice.finish_reason is not None:
            self._end(choice.finish_reason)
        if choice.usage:
            self._count(choice.usage)

    def _message(self, message: Delta, out: list[ModelEvent]) -> None:
        """A whole answer. Behind deltas it only repeats them (MiniMax): then only calls that they lacked are taken."""
        if not self._speech.said and not self._calls:
            self._delta(message, out)
        elif message.tool_calls and not self._calls:
            self._calls.add(message.tool_calls)

    def _delta(self, delta: Delta, out: list[ModelEvent]) -> None:
        self._speech.take(delta, out)
        if delta.tool_calls:
            self._calls.add(delta.tool_calls)
        if delta.function_call is not None:
            self._calls.add_legacy(delta.function_call)

    def _end(self, reason: str) -> None:
        if reason in _FAILED:
            self._fail(Overloaded(f"the service broke off its answer (finish reason {reason!r}); ask again later"))
        elif self._finish is None and reason not in ("", "null"):
            self._finish = FINISH.get(reason, "other")

    def _count(self, raw: msgspec.Raw) -> None:
        if is_given(raw):
            self._usage = read_usage(bytes(raw), self._reasoning_in_output) or self._usage

    def _odd(self, payload: bytes, fault: Exception, out: list[ModelEvent]) -> None:
        text = payload.strip()
        if text == b"[DONE]":
            self.done = True
        elif text:
            mended = mend(text)
            if mended is None:
                self._damaged = True
            else:
                self._mended = True
                self._chunk(mended.chunk, mended.payload, out)
            if mended is None or not mended.payload.startswith(b"{"):
                self._pass_over(text, fault, "not a chat chunk")
