"""Text from a model or a tool, made safe to show.

Such text may hold control characters that move the cursor, retitle the window, hide or reorder what is read. They are
shown as escapes instead of being obeyed. On a line about something it may also hold what looks like a secret, which is
masked.
"""

from __future__ import annotations

import json
from typing import Final

from deepstrike.secrets.shapes import masked

_LONGEST_SECRET: Final = 4096
_KEPT = (0x09, 0x0A)
_CONTROLS = (
    *(code for code in range(0x20) if code not in _KEPT),  # C0
    *range(0x7F, 0xA0),  # DEL and C1
    0x061C,  # marks, embeddings, overrides and isolates of bidirectional text
    *range(0x200E, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0x2028, 0x202A),  # line and paragraph separators
    0xFEFF,
    *range(0xD800, 0xE000),  # lone surrogates: no encoding takes them
    *range(0xE0000, 0xE0080),  # tag characters: letters that nobody sees
)
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}" for code in _CONTROLS}
_JSON_ESCAPES = {
    code: "".join(f"\\u{unit:04x}" for unit in memoryview(chr(code).encode("utf-16-le")).cast("H"))
    for code in _CONTROLS
    if code >= 0x7F and not 0xD800 <= code < 0xE000
}


def visible(text: str) -> str:
    """`text` with every control character but tab and newline written as an escape; CR LF becomes a newline."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def visible_json(line: str) -> str:
    """A line of JSON text in which such characters stand as JSON's own escapes: the same value."""
    return line if line.isascii() and line.isprintable() else line.translate(_JSON_ESCAPES)


def one_line(text: str, limit: int = 200) -> str:
    """`text` on one line of at most `limit` characters, made visible, secrets masked by their shape."""
    shown = masked(text[: limit * 4 + _LONGEST_SECRET])[: limit * 4]
    words = " ".join(shown.split())
    cut = len(words) > limit or len(text) > limit * 4
    return visible(words[:limit]) + (" …" if cut else "")


def json_line(value: object) -> str:
    """`value` as one line of JSON in ASCII, which no terminal obeys; secrets masked by their shape."""
    return masked(json.dumps(value))
