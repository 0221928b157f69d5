"""Text that streams to where secrets are masked by their shape and name."""

from __future__ import annotations

from typing import Final

from deepstrike.secrets.names import WORD, begun
from deepstrike.secrets.shapes import blanked, masked

_LONGEST: Final = 8192


class Curtain:
    """One stream of text. What may become a secret at its end is held back until it is over.

    That is the last word, and what stands from a secret's name on, from the beginning of an address or of a private
    key. No more than 8192 characters are waited for. What `masked` hides of the whole is hidden, but for a name with
    its value within a query's value, which is one secret in the whole.
    """

    __slots__ = ("_enough", "_held")

    def __init__(self) -> None:
        self._held = ""
        self._enough = 0

    def passed(self, piece: str) -> str:
        """What may be shown now that `piece` has come; maybe nothing."""
        text = self._held = self._held + piece
        if len(text) < self._enough:
            return ""
        over = begun(text, blanked(text))
        shown = masked(text[:over])
        if shown + masked(text[over:]) != masked(text):
            over, shown = 0, ""  # what is there now would be masked otherwise in two parts
        if len(text) - over > _LONGEST:
            over = len(text.rstrip(WORD))
            over = over if len(text) - over <= _LONGEST else len(text)
            shown = masked(text[:over])
        self._held = text[over:]
        # What is held long is not looked at anew for each piece: that would cost more the longer it is.
        self._enough = len(self._held) + len(self._held) // 8
        return shown

    def rest(self) -> str:
        """What was held back; the stream is over, or begins anew."""
        held, self._held, self._enough = self._held, "", 0
        return masked(held)
