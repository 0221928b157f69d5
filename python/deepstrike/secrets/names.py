"""Secrets that are told by the name before them: in JSON, in code, in settings, in headers, in addresses.

Only text that leaves is masked so, which is why it may take away too much: a value that is none is merely not shown.
What is left are bare words of letters behind `name: ` or `name = `, as in prose and in code.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

from deepstrike.secrets.notation import (
    ARGUMENT,
    ARGUMENT_GOES_ON,
    ELEMENT,
    ELEMENT_GOES_ON,
    GOES_ON,
    NEXT_ARGUMENT,
    PLACE_GOES_ON,
    PLACES,
    SCHEME,
    SCHEME_GOES_ON,
    TOKEN,
    VALUE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN: Final = "***"

WORD: Final = string.ascii_letters + string.digits + "_.-"
"""What names, and most keys, are made of."""

_LONGEST_NAME: Final = 64

_ALWAYS: Final = re.compile("")
_NOT_IN_A_WORD: Final = re.compile(r"(?:(?<![a-z0-9])|(?<=\\[bfnrt]))\Z")  # the letter may belong to an escape
# Every way in which a name may end, and what must stand before that: a word that tells of a secret. `token` alone is
# also the word for a piece of text, and `key` that for a place in a table.
_ENDS: Final = {
    "password": _ALWAYS,
    "passwd": _ALWAYS,
    "passphrase": _ALWAYS,
    "passcode": _ALWAYS,
    "secret": _ALWAYS,
    "authorization": _NOT_IN_A_WORD,
    "pwd": re.compile(r"[_-]\Z"),
    "pass": re.compile(r"(?<![a-z0-9])(?:db|smtp|proxy|user|admin|root|mysql|pg|redis|ftp)[_-]?\Z"),
    "token": re.compile(r"(?:[_-]|access|auth|refresh|bearer|session|security|api|(?<![a-z0-9])id)\Z"),
    "key": re.compile(
        r"(?:api|access|private|client|secret|auth|account|storage|master|shared|signing|encryption|subscription)[_-]?\Z"
    ),
}
# Such ends tell in the names of an environment only.
_ENVIRONMENT: Final = ("KEY", "PASS", "AUTH", "CREDENTIAL", "CREDENTIALS")
_SCHEMES: Final = ("bearer", "basic")
_STEMS: Final = (*_ENDS, "auth", "credential", "credentials", *_SCHEMES)

_in_environment = re.compile(r"[A-Z0-9]_\Z")
_flag = re.compile(r"--[A-Za-z-]*\Z")
_tag = re.compile(r"<[\w:.-]*\Z")
_name = re.compile(r"[\w-]*\Z")


def masked_by_name(text: str) -> str:
    """`text` with `***` in the place of values whose name says that they are secret. JSON stays JSON."""
    parts, done = [], 0
    for stem, start in _stems(text):
        if start < done or (found := _found(text, stem, start)) is None:
            continue
        group = found.lastgroup or ""
        quote = _own_quote(found["quote"]) if group == "number" else ""
        parts += [text[done : found.start(group)], quote, HIDDEN, quote]
        done = found.end(group)
    text = "".join(parts) + text[done:]
    for place in PLACES:
        text = place.sub(rf"\g<front>{HIDDEN}", text)
    return text


def _own_quote(text: str) -> str:
    """The quote at the end of a string of JSON without backslashes of what it holds, `\\"` for `\\\\\\\\\\"`."""
    after = len(text)  # the backslashes and one
    return "\\" * ((after & -after) - 1) + '"'


def begun(text: str, blanked: str) -> int:
    """Where the end of `text` begins that more text could still make a secret, or change what of it is one.

    That is the last word at least, with a mark before it that may belong to it. In `blanked` something else stands for
    secrets told by their shape, of the same length.
    """
    start = _word_start(text)
    for each in (text, blanked):
        if (found := PLACE_GOES_ON.search(each)) is not None:
            start = min(start, found.start())
    done = 0
    for stem, place in _stems(blanked):
        if place >= start:
            break
        if place < done:
            continue
        before = blanked[max(0, place - _LONGEST_NAME) : place]
        if _may_go_on(blanked, stem, place, before):
            return min(start, place - len(before) + _word_start(before))
        if (value := _found(blanked, stem, place)) is not None:
            done = value.end(value.lastgroup or 0)
    return start


def _may_go_on(text: str, stem: str, start: int, before: str) -> bool:
    end = start + len(stem)
    if stem in _SCHEMES:
        return SCHEME_GOES_ON.match(text, end) is not None
    if stem != "token" and not _tells(before, text[start:end], stem):
        return False
    if GOES_ON.match(text, end) or (_flag.search(before) and ARGUMENT_GOES_ON.match(text, end)):
        return True
    return _tag.search(before) is not None and ELEMENT_GOES_ON.match(text, end) is not None


def _word_start(text: str) -> int:
    """Where the last word begins, with marks before it that tell what it is."""
    start = len(text.rstrip(WORD + ":"))
    while start and text[start - 1] in "\\<?&":
        start -= 1
    return start


def _stems(text: str) -> list[tuple[str, int]]:
    """Every place where the name of a secret may end, in order; where two begin, the longer one first."""
    lower = text.lower()
    if len(lower) != len(text):  # some letters have a lower case of two
        lower = "".join(each if len(each.lower()) != 1 else each.lower() for each in text)
    found = [(start, -len(stem), stem) for stem in _STEMS for start in _places(lower, stem)]
    return [(stem, start) for start, _, stem in sorted(found)]


def _places(text: str, word: str) -> Iterator[int]:
    start = text.find(word)
    while start >= 0:
        yield start
        start = text.find(word, start + len(word))


def _found(text: str, stem: str, start: int) -> re.Match[str] | None:
    """The value behind a name that ends with this stem, if it is that of a secret."""
    end = start + len(stem)
    before = text[max(0, start - _LONGEST_NAME) : start]
    if stem in _SCHEMES:
        return SCHEME.match(text, end) if _NOT_IN_A_WORD.search(before.lower()) else None
    flag = _flag.search(before) is not None
    if _tells(before, text[start:end], stem):
        found = VALUE.match(text, end)
        if found is None:
            return _told_without_a_sign(text, end, before, flag)
        return None if _is_itself(found["assigned"], before + text[start:end]) else found
    if stem == "token" and _NOT_IN_A_WORD.search(before.lower()):
        return TOKEN.match(text, end) or (_told_without_a_sign(text, end, before, flag) if flag else None)
    return None


def _told_without_a_sign(text: str, end: int, before: str, flag: bool) -> re.Match[str] | None:
    if flag:
        return NEXT_ARGUMENT.match(text, end) or ARGUMENT.match(text, end)
    return ELEMENT.match(text, end) if _tag.search(before) else None


def _tells(before: str, written: str, stem: str) -> bool:
    if (needed := _ENDS.get(stem)) is not None and needed.search(before.lower()):
        return True
    if stem == "token" and written == "Token" and before[-1:].isalnum():
        return True
    return written in _ENVIRONMENT and _in_environment.search(before) is not None


def _is_itself(value: str | None, text: str) -> bool:
    """Whether what is assigned is called as it is, as in `f(password=self.password)`."""
    name = _name.search(text)
    return value is not None and name is not None and value.rpartition(".")[2] == name[0]
