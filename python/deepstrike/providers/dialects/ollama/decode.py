"""Ollama's lines → model events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.errors import Unreachable
from deepstrike.providers.base import Artefact, Finish, ModelEvent, ToolCall
from deepstrike.providers.dialects.json_text import quote
from deepstrike.providers.dialects.mending import mended
from deepstrike.providers.dialects.names import names_back
from deepstrike.providers.dialects.ollama.cut import cut_notice
from deepstrike.providers.dialects.ollama.wire import ABSENT, Call, Function, Line, decode_line, decode_text, is_given
from deepstrike.providers.dialects.reading import Reading, bad_stream
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import Notice

FINISH = {"stop": "stop", "length": "length"}
_NO_FUNCTION = Function()


class OllamaDecoder(Reading):
    """Reads one answer. What stands behind a tool call is kept back with it until the end, so that order survives."""

    __slots__ = (
        "_asked",
        "_calls",
        "_counted",
        "_expose",
        "_held",
        "_hidden",
        "_names",
        "_newer",
        "_output",
        "_read",
    )

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.faults)
        self._asked = asked
        self._names = names_back(asked.request.tools)
        self._expose = asked.request.extensions.get("expose_reasoning") is not False
        self._calls = 0
        self._counted: int | None = None
        self._held: list[ModelEvent] = []
        self._hidden: list[str] = []
        self._newer = False
        self._output: int | None = None
        self._read = False

    def feed_whole(self, body: bytes) -> list[ModelEvent] | None:
        """The events of an answer in one piece, or of lines under another content type; None for anything else."""
        lines = [line for line in body.split(b"\n") if line.strip()]
        out = self.feed(lines)
        return out if self._read and not self._damaged else None

    def end(self) -> list[ModelEvent]:
        """Calls, usage, what there is to tell, and the finish; raises what went wrong."""
        if self._finish is None and self._fault is None and self._damaged and not self._read:
            raise _not_ollama()
        reason = FINISH.get(self._reason("its last line"), "other")
        if self._damaged:
            raise bad_stream("")
        if self._calls and reason == "stop":  # Ollama says "stop" behind tool calls too
            reason = "tool_calls"
        tail: list[ModelEvent | None] = [self._thoughts(), *self._held, self._usage(), self._cut()]
        return [*(event for event in tail if event is not None), Finish(reason)]

    def _payload(self, payload: bytes, out: list[ModelEvent]) -> None:
        try:
            self._line(decode_line(payload), payload, out)
        except (msgspec.DecodeError, RecursionError) as fault:
            self._odd(payload, fault, out)

    def _odd(self, payload: bytes, fault: Exception, out: list[ModelEvent]) -> None:
        again = mended(payload)
        try:
            if again is None:
                raise fault
            self._line(decode_line(again), again, out)
        except (msgspec.DecodeError, RecursionError) as still:
            self._damaged = True
            self._pass_over(payload, still, "no line of an answer")

    def _line(self, line: Line, payload: bytes, out: list[ModelEvent]) -> None:
        message = line.message
        self._read = self._read or message is not None or line.done is not None
        if message is not None:
            if message.thinking:
                self._think(message.thinking, out)
            if message.content:
                self._say(TextDelta(message.content), out)
            for call in message.tool_calls or ():
                self._call(call)
        if line.error and is_given(line.error):
            self._read = True
            self._fail(self._faults.stream(payload))
        elif line.done:
            self._end(line)

    def _think(self, text: str, out: list[ModelEvent]) -> None:
        self._newer = True  # servers that tell thinking apart count the whole prompt
        if self._expose:
            self._say(ThinkingDelta(text), out)
        else:
            self._hidden.append(text)

    def _say(self, event: ModelEvent, out: list[ModelEvent]) -> None:
        (self._held if self._calls else out).append(event)

    def _call(self, call: Call) -> None:
        function = call.function or _NO_FUNCTION
        name = function.name or ""
        self._newer = self._newer or bool(call.id) or function.index is not None
        self._calls += 1
        self._held.append(ToolCall(call.id or "", self._names.get(name, name), _arguments(function.arguments)))

    def _end(self, line: Line) -> None:
        self.done = True
        self._finish = line.done_reason or "stop"
        self._counted, self._output = line.prompt_eval_count, line.eval_count

    def _usage(self) -> Usage | None:
        """None where the prompt was not counted (old servers, when all of it was cached): then it is estimated."""
        if not self._counted:
            return None
        return Usage(input=self._counted, output=self._output or 0)

    def _thoughts(self) -> Artefact | None:
        """Thinking that is not shown goes back all the same."""
        text = "".join(self._hidden)
        return Artefact(self._asked.source, quote(text).decode()) if text else None

    def _cut(self) -> Notice | None:
        return cut_notice(self._asked, self._counted or None, newer=self._newer)


def _not_ollama() -> Unreachable:
    return Unreachable(
        "the answer is not Ollama's (check base_url and OLLAMA_HOST, and that no proxy or sign-in page answers in "
        "between)",
        code="not_a_stream",
        retryable=False,
    )


def _arguments(raw: msgspec.Raw) -> str:
    """The arguments as JSON text, `{}` where there are none."""
    text = bytes(raw if is_given(raw) else ABSENT).decode("utf-8", "replace").strip()
    if text[:1] == '"':
        text = decode_text(text.encode()).strip()
    return "{}" if text in ("", "null") else text
