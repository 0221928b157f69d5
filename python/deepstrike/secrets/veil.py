"""Bound values kept out of a text that is shown piece by piece, also where two pieces share one."""

from __future__ import annotations

import re

from deepstrike.secrets.anyhow import could_hide
from deepstrike.secrets.binding import HIDDEN, Bound, bound

_NEVER = re.compile(r"(?!)")


class _Forms:
    """The forms of the values bound at one moment, ready for being looked for."""

    def __init__(self, secrets: Bound) -> None:
        self.secrets = secrets
        # The longest stands first, so that none is found in part.
        self.whole = re.compile("|".join(map(re.escape, secrets.forms)))
        self._longest = len(secrets.forms[0]) if secrets.forms else 1
        self._by_first: dict[str, list[str]] = {}
        for form in secrets.forms:
            self._by_first.setdefault(form[0], []).append(form)
        self.first = re.compile("[" + "".join(map(re.escape, self._by_first)) + "]") if self._by_first else _NEVER

    def begun(self, text: str, start: int) -> int | None:
        """The first place from `start` on where `text` ends within a form."""
        for found in self.first.finditer(text, max(start, len(text) - self._longest + 1)):
            tail = text[found.start() :]
            for form in self._by_first[found[0]]:
                if len(tail) < len(form) and form.startswith(tail):
                    return found.start()
        return None


_NOTHING = _Forms(Bound())


class Veil:
    """One stream of text. What may be the beginning of a bound value is held back until more is known of it.

    That is at most one value's length, and comes with `rest` at the end.
    """

    __slots__ = ("_forms", "_held", "_patience", "_shown")

    def __init__(self, patience: int = 1) -> None:
        """Beginnings shorter than `patience` characters are shown at once: pieces that stand for themselves are not
        cut for a likeness. Of such a value no more than that is shown."""
        self._forms = _NOTHING
        self._held = ""
        self._shown = 0  # so much of what is held was shown
        self._patience = patience

    def passed(self, piece: str) -> str:
        """What may be shown now that `piece` has come; maybe nothing."""
        secrets = bound()
        if secrets is not self._forms.secrets:
            self._forms = _Forms(secrets) if secrets else _NOTHING
        if self._forms is _NOTHING and not self._held:
            return piece
        if not self._held and self._forms.first.search(piece) is None:
            return self._without_escapes(piece)
        return self._scanned(self._held + piece)

    def rest(self) -> str:
        """What was held back; the stream is over, or begins anew."""
        held, shown = self._held, self._shown
        self._held, self._shown = "", 0
        return held[shown:]

    def _scanned(self, text: str) -> str:
        found, done = "", self._shown
        begun = self._forms.begun(text, 0)
        self._held, self._shown = "", 0
        place = 0
        while True:
            if begun is not None and begun < place:
                begun = self._forms.begun(text, place)
            match = self._forms.whole.search(text, place) if self._forms is not _NOTHING else None
            if match is None or (begun is not None and begun <= match.start()):
                break
            found += text[done : match.start()] + HIDDEN
            place = done = match.end()
        if begun is None:
            return self._without_escapes(found + text[done:])
        self._held = text[begun:]
        if len(self._held) < self._patience:
            self._shown, shown = len(self._held), text[done:]
        else:
            self._shown, shown = max(0, done - begun), text[done:begun]
        return self._without_escapes(found + shown)

    def _without_escapes(self, text: str) -> str:
        return self._forms.secrets.hidden(text) if could_hide(text) else text
