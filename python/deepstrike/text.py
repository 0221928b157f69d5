"""Text that may cross a boundary: every string here can be encoded as UTF-8."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined to the character they mean and lone surrogates replaced by U+FFFD.

    Text without surrogates, nearly all, is returned as it is: checking it costs one pass at memory speed, ASCII none.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
