"""The ways in which servers and encoders write one secret value."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

_percent = re.compile(r"%[0-9A-F]{2}")
# How many characters of base64 the bytes in front of a value take part in, by their number modulo three.
_SHARED_FRONT = (0, 2, 3)


def written(value: str) -> set[str]:
    """As it is, as JSON writes it, as JSON within JSON does, as a URL does, as HTML does and as `repr` does."""
    value = value.encode(errors="replace").decode()
    plain = {value, html.escape(value), html.escape(value, quote=False)}
    plain |= {repr(value)[1:-1], repr(value + "'\"")[1:-4]}  # also in a text that holds quotes of both kinds
    quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
    quoted |= {_percent.sub(lambda found: found[0].lower(), form) for form in quoted}
    return plain | quoted | _as_json(value) | _as_json(value, slash="\\/")


def in_base64(value: str) -> set[str]:
    """What base64, of either alphabet, makes of `value` whatever stands before and behind it, such as `Bearer `.

    The first and last character, which it shares with its neighbours, are not part of it.
    """
    raw = value.encode(errors="replace")
    forms: set[str] = set()
    for before, shared in enumerate(_SHARED_FRONT):
        end = (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.add(encode(b"\0" * before + raw)[shared:end].decode())
    return forms


def _as_json(value: str, slash: str = "/") -> set[str]:
    forms = set()
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1].replace("/", slash)
        forms |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    return forms
