"""Text that streams to where secrets are masked by their shape."""

from __future__ import annotations

import string
from typing import Final

from deepstrike.secrets.shapes import masked

_WORD: Final = string.ascii_letters + string.digits + "_.-"
_LONGEST: Final = 4096


class Curtain:
    """One stream of text. The word at its end is held back until it is over: it may become a key.

    A word of more than 4096 characters is not waited for. What is told by its name or over several lines is seen only
    where it comes in one piece.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def passed(self, piece: str) -> str:
        """What may be shown now that `piece` has come; maybe nothing."""
        text = self._held + piece
        over = len(text.rstrip(_WORD))
        if len(text) - over > _LONGEST:
            over = len(text)
        self._held = text[over:]
        return masked(text[:over])

    def rest(self) -> str:
        """What was held back; the stream is over, or begins anew."""
        held, self._held = self._held, ""
        return masked(held)
