"""An answer that the service pauses in the middle of its own tools, and goes on with when it is sent back as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.base import Artefact, Memo, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.message import AssistantBlock, CallBlock, Opaque, Text, Usage

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.wire.message import AssistantPart

PAUSED = "pause"
"""The finish of an answer that is not at its end: whoever asked sends back what it said so far."""


class Paused:
    """Collects what was said before each pause, and what it cost."""

    __slots__ = ("_parts", "_used")

    def __init__(self) -> None:
        self._parts: list[AssistantPart] = []
        self._used = Usage(0, 0)

    @property
    def began(self) -> bool:
        """Something was said already."""
        return bool(self._parts)

    def note(self, event: ModelEvent) -> None:
        """Keep what has to be sent back."""
        if isinstance(event, TextDelta):
            last = self._parts[-1] if self._parts else None
            if isinstance(last, Text):
                self._parts[-1] = Text(last.text + event.delta)
            else:
                self._parts.append(Text(event.delta))
        elif isinstance(event, Artefact):
            self._parts.append(Opaque(event.dialect, event.text))
        elif isinstance(event, ToolCall):
            self._parts.append(CallBlock(event.id, event.name, event.arguments_text))

    def counted(self, usage: Usage) -> Usage:
        """`usage` and that of the calls before it."""
        before = self._used
        self._used = Usage(
            before.input + usage.input,
            before.output + usage.output,
            before.cached + usage.cached,
            before.cache_write + usage.cache_write,
            before.reasoning + usage.reasoning,
        )
        return self._used

    def resumed(self, request: ModelRequest, dialect: str, model: str) -> ModelRequest:
        """The request with what was said behind it, and a copy of its memo: the answer is not in the prompt yet."""
        memo, old = Memo(), request.memo
        memo.turns, memo.head, memo.body, memo.marks = old.turns, old.head, bytearray(old.body), list(old.marks)
        said = AssistantBlock(tuple(self._parts), dialect, model)
        return msgspec.structs.replace(request, turns=[*request.turns, said], memo=memo)
