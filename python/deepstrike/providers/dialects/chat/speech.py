"""What the deltas of one answer say: text, thinking, and the reasoning that must go back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.base import Artefact, ModelEvent
from deepstrike.providers.dialects.chat.details import Details
from deepstrike.providers.dialects.chat.think import ThinkSplitter
from deepstrike.providers.dialects.json_text import quote
from deepstrike.stream import TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.dialects.chat.dialect import Replay
    from deepstrike.providers.dialects.chat.wire import ContentPart, Delta


class Speech:
    """Turns deltas into text and thinking.

    With `expose` off no `ThinkingDelta` is made. `split_think` splits reasoning in tags from the text. What `replay`
    will need and no `ThinkingDelta` holds becomes an artefact of `source`: fields of the assistant message, as a JSON
    object, or reasoning that goes back in tags, as a JSON string. `said` tells whether anything was said yet.
    """

    __slots__ = ("_details", "_expose", "_hidden", "_replay", "_source", "_splitter", "_thought", "said")

    def __init__(self, replay: Replay, source: str, *, expose: bool, split_think: bool) -> None:
        self.said = False
        self._details = Details()
        self._expose = expose
        self._hidden: list[str] = []
        self._replay = replay
        self._source = source
        self._splitter = ThinkSplitter() if split_think else None
        self._thought = False

    def take(self, delta: Delta, out: list[ModelEvent]) -> None:
        """The events of one delta."""
        thinking = delta.reasoning_content or delta.reasoning
        if delta.reasoning_details:
            thinking = self._detail(bytes(delta.reasoning_details), thinking)
        if thinking:
            self._think(thinking, out)
        content = delta.content
        if content:
            if isinstance(content, str):
                self.said = True
                if self._splitter is None:
                    out.append(TextDelta(content))
                else:
                    self._split(*self._splitter.push(content), out)
            else:
                self._parts(content, out)
        if delta.refusal:
            self.said = True
            out.append(TextDelta(delta.refusal))

    def close(self) -> list[ModelEvent]:
        """What was held back, and the artefact."""
        out: list[ModelEvent] = []
        if self._splitter is not None:
            self._split(*self._splitter.close(), out)
        if self._details and self._replay.details:
            out.append(Artefact(self._source, f'{{"reasoning_details":{self._details.text()}}}'))
        elif self._hidden and self._replay.name:
            text = quote("".join(self._hidden)).decode()
            out.append(Artefact(self._source, f'{{"{self._replay.name}":{text}}}'))
        elif self._hidden and self._replay.inline:
            out.append(Artefact(self._source, quote("".join(self._hidden)).decode()))
        return out

    def _detail(self, raw: bytes, thinking: str | None) -> str | None:
        """Keep the details, which may have to go back; their texts are the thinking where nothing else says it."""
        told = self._details.add(raw)
        self._thought = self._thought or bool(thinking)
        return thinking if self._thought else told

    def _think(self, text: str, out: list[ModelEvent]) -> None:
        self.said = True
        if self._expose:
            out.append(ThinkingDelta(text))
        else:
            self._hidden.append(text)

    def _split(self, thinking: str, text: str, out: list[ModelEvent]) -> None:
        if thinking:
            self._think(thinking, out)
        if text:
            out.append(TextDelta(text))

    def _parts(self, parts: Sequence[ContentPart], out: list[ModelEvent]) -> None:
        for part in parts:
            thinking = part.thinking
            if isinstance(thinking, list):
                thinking = "".join(piece.text or "" for piece in thinking)
            if thinking:
                self._think(thinking, out)
            if part.text:
                self.said = True
                self._split(*(self._splitter.push(part.text) if self._splitter else ("", part.text)), out)
