"""Hides bound secrets in what people and logs get to see."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from deepstrike.secrets.forms import in_base64, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHORTEST = 6
_SHORTEST_PIECE = 8
# A key of a megabyte is none; a text much longer than what is shown need not be looked through to its end.
_LOOKED_THROUGH = 64 * 1024
_between = re.compile(r"[\s;,\"]+")
HIDDEN = "***"


class Mask:
    """Replaces every given secret in a text, also escaped for JSON, HTML or a URL, and within base64.

    Of a value in pieces, such as `Bearer KEY` or `session=KEY; path=/`, every piece of eight characters or more
    is a secret too.
    Values shorter than six characters are left alone: they would hide ordinary words.
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            for value in (secret, *_pieces(secret)):
                if len(value) >= _SHORTEST:
                    forms |= written(value) | in_base64(value)
        self._secrets = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def beginning(self, data: bytes, limit: int) -> str:
        """The first `limit` characters of a text, masked before it is cut, so that no part of a secret is left.

        `data` may have been cut before: what it ends with is hidden too if a secret begins so.
        """
        text = self(data[:_LOOKED_THROUGH].decode("utf-8", "replace").rstrip("\ufffd"))
        return self._without_open_end(text)[:limit]

    def _without_open_end(self, text: str) -> str:
        longest = max((_overlap(text, secret) for secret in self._secrets), default=0)
        return text[: len(text) - longest] + HIDDEN if longest else text

    def __repr__(self) -> str:
        return f"Mask({len(self._secrets)} forms)"


def _overlap(text: str, secret: str) -> int:
    """How many characters at the end of `text` are the beginning of `secret`; 0 if so few that they tell nothing."""
    sizes = range(min(len(secret), len(text)), _SHORTEST - 1, -1)
    return next((size for size in sizes if text.endswith(secret[:size])), 0)


def _pieces(value: str) -> Iterator[str]:
    """The parts behind a scheme, a name or a separator, and the password within `Basic …`."""
    for piece in _between.split(value):
        for part in (piece, piece.partition("=")[2]):
            if len(part) >= _SHORTEST_PIECE and part != value:
                yield part
    scheme, _, told = value.partition(" ")
    if scheme.lower() == "basic":
        password = _decoded(told.strip()).partition(":")[2]
        if len(password) >= _SHORTEST_PIECE:
            yield password


def _decoded(told: str) -> str:
    try:
        return base64.b64decode(told, validate=True).decode()
    except ValueError:
        return ""
