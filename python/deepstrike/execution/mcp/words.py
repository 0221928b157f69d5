"""Words of a server, which are nobody's we trust: without hidden characters, and bounded."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from deepstrike.text import well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN: Final = "***"

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_KEPT: Final = frozenset("\n\t\u200c\u200d")
"""Line breaks, and the joiners that some scripts and emoji cannot do without."""


def plain(text: str, limit: int) -> str:
    """`text` without control, format, tag and direction characters, at most `limit` characters and a mark.

    Such characters show nothing to a person who approves a tool, and a model reads them.
    """
    text = well_formed(text[: 8 * limit]).replace("\r\n", "\n")
    if text.isascii():
        text = _CONTROLS.sub("", text)
    else:
        text = "".join(each for each in text if each in _KEPT or unicodedata.category(each) not in ("Cc", "Cf", "Co"))
    return text if len(text) <= limit else f"{text[:limit].rstrip()} […]"


def masked(text: str, secrets: Sequence[str]) -> str:
    """`text` with every secret hidden."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def told(text: str, limit: int, secrets: Sequence[str]) -> str:
    """`text` made plain, without a secret: neither one that hidden characters had split, nor a part at the cut."""
    return masked(plain(masked(text, secrets), limit), secrets)
