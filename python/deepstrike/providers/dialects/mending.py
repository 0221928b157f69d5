"""A second, slower reading of JSON that the quick one refuses.

Services send lone surrogates, bytes that are no UTF-8, and NaN. None of that is worth the text, the call or the finish
that stands beside it.
"""

from __future__ import annotations

import json

from deepstrike.text import well_formed


def mended(payload: bytes) -> bytes | None:
    """The payload as strict JSON; None if it is no JSON at all.

    Bytes that are no UTF-8 and lone surrogates become U+FFFD, NaN and the infinities null.
    """
    try:
        value = json.loads(payload.decode("utf-8", "replace"), parse_constant=lambda _: None)
        return well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
    except (ValueError, RecursionError):
        return None
