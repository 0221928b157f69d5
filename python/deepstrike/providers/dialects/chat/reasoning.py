"""What of an earlier reply's reasoning goes back with its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.json_text import quote
from deepstrike.wire.message import CallBlock, Notice, Opaque, Thinking

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.providers.dialects.chat.dialect import Replay, Turns
    from deepstrike.wire.message import AssistantBlock

_decode_text = msgspec.json.Decoder(str).decode


class Reasoning:
    """Gives each reply its own reasoning back, as `replay` says, and tells of what had to be left out.

    `thinks` is false while the user has thinking switched off: an empty field is not demanded then.
    """

    __slots__ = ("_asked", "_foreign", "_replay", "_thinks")

    def __init__(self, asked: Asked, replay: Replay) -> None:
        self._asked = asked
        self._replay = replay
        self._thinks = asked.request.extensions.get("enable_thinking") is not False
        self._foreign: dict[str, int] = {}

    def fields(self, block: AssistantBlock) -> bytes:
        """Fields of the assistant message, each with a comma before it."""
        replay = self._replay
        calls = any(isinstance(part, CallBlock) for part in block.parts)
        if not self._is_own(block):
            text, opaque = "", list[str]()
        else:
            text = "".join(part.text for part in block.parts if isinstance(part, Thinking))
            opaque = [part.text for part in block.parts if isinstance(part, Opaque) and not _in_tags(part)]
        if opaque and _holds(replay.turns, calls):
            return b"".join(b"," + one.strip()[1:-1].encode() for one in opaque if one.strip()[1:-1])
        if replay.name and ((text and _holds(replay.turns, calls)) or self._demands(calls)):
            return b',"%b":%b' % (replay.name.encode(), quote(text))
        return b""

    def opening(self, block: AssistantBlock) -> str:
        """What stands before the text of the message: reasoning in tags, for a service that wrote it so."""
        kept = [part for part in block.parts if isinstance(part, Opaque)]
        if not self._replay.inline or not self._is_own(block) or not all(map(_in_tags, kept)):
            return ""
        text = "".join(part.text for part in block.parts if isinstance(part, Thinking))
        text += "".join(_decode_text(part.text.encode()) for part in kept)
        return f"<think>\n{text}\n</think>\n\n" if text else ""

    def check(self, block: AssistantBlock) -> None:
        """Note what another service's or model's reply loses."""
        replay = self._replay
        loses = any(isinstance(part, Opaque) or (replay.name and isinstance(part, Thinking)) for part in block.parts)
        if loses and not self._is_own(block):
            whose = block.model or block.dialect or "another model"
            self._foreign[whose] = self._foreign.get(whose, 0) + 1

    def notices(self) -> list[Notice]:
        """One for each model whose reasoning was left out."""
        return [
            Notice(
                "artefact_dropped",
                f"the reasoning in {count} earlier {'reply' if count == 1 else 'replies'} of {whose} was not sent: "
                f"{self._asked.info.id} cannot read it",
            )
            for whose, count in self._foreign.items()
        ]

    def _is_own(self, block: AssistantBlock) -> bool:
        if block.dialect != self._asked.source:
            return False
        return not self._replay.same_model or block.model == self._asked.info.id

    def _demands(self, calls: bool) -> bool:
        return self._thinks and _holds(self._replay.demanded, calls)


def _in_tags(part: Opaque) -> bool:
    """Whether this is reasoning that was not shown, as a text; else it is fields of the message, as an object."""
    return part.text[:1] == '"'


def _holds(turns: Turns, calls: bool) -> bool:
    return turns == "all" or (turns == "tools" and calls)
