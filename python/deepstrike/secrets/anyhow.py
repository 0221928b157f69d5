"""A secret however deep it stands in JSON within JSON, and with whatever of its characters written as escapes."""

from __future__ import annotations

import re
from typing import Final

_SHORT: Final = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_RUN: Final = re.compile(r"\\+|[^\\]", re.DOTALL)


def could_hide(text: str) -> bool:
    """Whether there may be escapes in it beyond those that `forms.written` knows."""
    return "\\u" in text or "\\\\\\\\" in text


def anyhow(value: str) -> str:
    """A regular expression for `value`: each of its characters as itself or as an escape, behind any number of
    backslashes, since every level of JSON doubles them.

    A run of backslashes is matched from its beginning only and by one piece of the expression, so that a text of
    nothing else takes no longer than another one.
    """
    pattern, behind_run = "", False
    for found in _RUN.findall(value):
        if found[0] == "\\":
            pattern += rf"\\{{{len(found)},}}" if pattern else rf"(?<!\\)\\{{{len(found)},}}"
            behind_run = True
            continue
        pattern += _character(found, "" if behind_run else r"\\+" if pattern else r"(?<!\\)\\+")
        behind_run = False
    return pattern


def _character(character: str, escape: str) -> str:
    """The character, or what `escape` stands in front of."""
    ways = [re.escape(character), escape + r"\\+".join(map(_code, _units(character)))]
    if character in _SHORT:
        ways.append(escape + _SHORT[character])
    elif character in '"/':
        ways.append(escape + character)
    return f"(?:{'|'.join(ways)})"


def _units(character: str) -> list[int]:
    """Its code units of sixteen bits: escapes write one each."""
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def _code(unit: int) -> str:
    return "u" + "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{unit:04x}")
