"""Text that streams to where secrets are masked by their shape and name."""

from __future__ import annotations

from typing import Final

from deepstrike.secrets.names import WORD, begun
from deepstrike.secrets.shapes import masked

_LONGEST: Final = 8192


class Curtain:
    """One stream of text. What may become a secret at its end is held back until it is over.

    That is the last word, and what stands from a secret's name on, from the beginning of an address or of a private
    key. No more than 8192 characters are waited for.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def passed(self, piece: str) -> str:
        """What may be shown now that `piece` has come; maybe nothing."""
        text = self._held + piece
        over = len(text.rstrip(WORD))
        start = begun(text)
        if start is not None:
            over = min(over, start)
        if len(text) - over > _LONGEST:
            over = len(text)
        self._held = text[over:]
        return masked(text[:over])

    def rest(self) -> str:
        """What was held back; the stream is over, or begins anew."""
        held, self._held = self._held, ""
        return masked(held)
