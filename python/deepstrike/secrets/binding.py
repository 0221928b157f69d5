"""The values that are bound, and the text without them."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.secrets.anyhow import anyhow, could_hide
from deepstrike.secrets.forms import written

if TYPE_CHECKING:
    from collections.abc import Mapping

HIDDEN: Final = "[secret]"
"""What stands in the place of a bound value."""

SHORTEST: Final = 8
"""Shorter values cannot be bound: they would hide ordinary words."""

_SHORTEST_KEY: Final = 16
_SECRET_NAME: Final = re.compile(r"key|token|secret|passw|auth|cookie|credential", re.IGNORECASE)


class Bound:
    """The values bound at one moment, in every form in which JSON, a URL or HTML writes them; frozen."""

    __slots__ = ("_anyhow", "_bytes", "_values", "forms")

    def __init__(self, values: frozenset[str] = frozenset()) -> None:
        forms = {form for value in values for form in written(value)}
        # The longest first, so that none is left in part.
        self.forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        self._bytes = tuple(form.encode() for form in self.forms)
        self._values = tuple(sorted(values, key=lambda value: (-len(value), value)))
        # Made when a text with such escapes is first looked at.
        self._anyhow: tuple[re.Pattern[str], ...] | None = None

    def __bool__(self) -> bool:
        return bool(self.forms)

    def stand_in(self, data: bytes) -> bool:
        """Whether any of them stands in this JSON: one pass for each at memory speed, more where it holds escapes."""
        if any(form in data for form in self._bytes):
            return True
        if not self._bytes or not (b"\\u" in data or b"\\\\\\\\" in data):
            return False
        text = data.decode("utf-8", "replace")
        return any(pattern.search(text) for pattern in self._patterns())

    def hidden(self, text: str) -> str:
        """`text` with `[secret]` in the place of each; JSON text stays JSON text."""
        hidden = self._replaced(text)
        if hidden == text or not _is_json(text) or _is_json(hidden):
            return hidden
        return json.dumps(
            self._within(json.loads(text, parse_int=self._number, parse_float=self._number)), ensure_ascii=False
        )

    def _replaced(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, HIDDEN)
        if self.forms and could_hide(text):
            for pattern in self._patterns():
                text = pattern.sub(HIDDEN, text)
        return text

    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        if self._anyhow is None:
            self._anyhow = tuple(re.compile(anyhow(value)) for value in self._values)
        return self._anyhow

    def _within(self, value: object) -> object:
        """A document with each of its texts hidden by itself."""
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, list):
            return [self._within(each) for each in value]
        if isinstance(value, dict):
            return {self._replaced(name): self._within(each) for name, each in value.items()}
        return value

    def _number(self, digits: str) -> object:
        return json.loads(digits) if self._replaced(digits) == digits else HIDDEN

    def __repr__(self) -> str:
        return f"Bound({len(self.forms)} forms)"


_lock = threading.Lock()
_values: frozenset[str] = frozenset()
_bound = Bound()


def bind(*values: str) -> None:
    """Keep these values out of every run of this process, from the next thing that a run records on. From any thread.

    Raises `ConfigError` for one that is no text of at least eight characters.
    """
    global _values, _bound
    for value in values:
        if not isinstance(value, str) or len(value) < SHORTEST:
            raise ConfigError(
                f"a secret must be a text of at least {SHORTEST} characters: a shorter one would hide words"
            )
    with _lock:
        if not _values.issuperset(values):
            _values = _values.union(values)
            _bound = Bound(_values)


def bind_named(values: Mapping[str, str]) -> None:
    """Bind those of these headers or variables that are named like a secret; a scheme in front (`Bearer`) is no part.

    Values below sixteen characters are passed over: local servers take any word for a key.
    """
    found = (value.rpartition(" ")[2] for name, value in values.items() if _SECRET_NAME.search(name))
    bind(*(value for value in found if len(value) >= _SHORTEST_KEY))


def bound() -> Bound:
    """What is bound at this moment."""
    return _bound


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
