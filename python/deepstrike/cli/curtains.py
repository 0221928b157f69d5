"""Streamed text in events, so that no key is told in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.secrets.curtain import Curtain
from deepstrike.stream import AgentEvent, DoneEvent, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.stream import StreamEvent


class Curtains:
    """The events of a run: of what the model and each sub-agent's model say, the word at the end waits for its end."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], tuple[Curtain, TextDelta | ThinkingDelta]] = {}

    def passed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """What may be told now that `event` has come: what its agent said last, if that is over, and the event."""
        path, said = (event.path, event.event) if isinstance(event, AgentEvent) else ((), event)
        if not isinstance(said, TextDelta | ThinkingDelta):
            yield from self.rest() if isinstance(event, DoneEvent) else self._rest(path)
            yield event
            return
        if path in self._open and type(self._open[path][1]) is not type(said):
            yield from self._rest(path)
        curtain, _ = self._open.setdefault(path, (Curtain(), said))
        yield from _told(path, said, curtain.passed(said.delta))

    def rest(self) -> Iterator[StreamEvent]:
        """What was held back; nothing more comes."""
        for path in list(self._open):
            yield from self._rest(path)

    def _rest(self, path: tuple[str, ...]) -> Iterator[StreamEvent]:
        if path in self._open:
            curtain, said = self._open.pop(path)
            yield from _told(path, said, curtain.rest())


def _told(path: tuple[str, ...], said: TextDelta | ThinkingDelta, text: str) -> Iterator[StreamEvent]:
    if text:
        piece = replace(said, delta=text)
        yield AgentEvent(path, piece) if path else piece
