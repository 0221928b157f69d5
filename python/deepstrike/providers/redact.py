"""Hides bound secrets in what people and logs get to see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORTEST = 6
HIDDEN = "***"


class Mask:
    """Replaces every given secret in a text, also where it stands JSON-escaped or percent-encoded.

    Values shorter than six characters are left alone: they would hide ordinary words.
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= _SHORTEST:
                forms.update((secret, json.dumps(secret)[1:-1], quote(secret, safe="")))
        self._secrets = tuple(sorted(forms, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"Mask({len(self._secrets)} forms)"
