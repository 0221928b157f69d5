"""Secrets that are told by the name before them: in JSON, in code, in settings, in headers, in addresses.

Only text that leaves is masked so, which is why it may take away too much: a value that is none is merely not shown.
What is left are bare words of letters behind `name: ` or `name = `, as in prose and in code.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN: Final = "***"

WORD: Final = string.ascii_letters + string.digits + "_.-"
"""What names, and most keys, are made of."""

_LONGEST_NAME: Final = 64

# A string in JSON, or in JSON within JSON: its quotes stand behind `depth` backslashes. Within it a backslash stands as
# twice one more than these; a quote behind whole backslashes and `depth` ends it, any other belongs to it.
_BACKSLASHES: Final = r"(?:(?P=depth)\\(?P=depth)\\)*"
_CHARACTER_IN_DOUBLE: Final = rf"(?:[^\"\\]|\\+(?![\"\\])|(?!{_BACKSLASHES}(?P=depth)\")\\+\")"
_DOUBLE: Final = rf"(?P<depth>\\*)\"(?P<double>{_CHARACTER_IN_DOUBLE}{{4,}}{_BACKSLASHES})(?P=depth)\""
# May stand in JSON: there a quotation mark of its own stands behind an odd number of backslashes.
_SINGLE: Final = r"\\*'(?P<single>(?:[^'\"\\\r\n]|(?<!\\)\\(?:\\\\)*\"|\\+[^\"\\]){4,})\\*'"

_NO_VALUE: Final = r"(?!(?:[Nn]one|null|nil|[Tt]rue|[Ff]alse|undefined)\b)"
_NO_CODE: Final = r"(?![A-Za-z_][\w.]{0,80}[(\[{]|[\[{(]|\$[{(A-Z])"
_CHARACTER: Final = r"(?:[^\s\"'`&;<>\\]|\\+(?![\\\"'`nrt])|\\+u[0-9a-fA-F]{4})"
_BARE: Final = rf"{_CHARACTER}{{4,}}(?<![,.)\]}}])"
_SCHEME: Final = r"(?i:(?:bearer|basic|token|digest|apikey|negotiate)\s{1,8})?"
# Where it may be prose or code, a value is what holds more than letters.
_MORE: Final = r"(?=[A-Za-z._,]{0,200}[^A-Za-z._,\s\"'`&;<>\\()\[\]{}|:])"
_QUOTE_OF_NAME: Final = r"(?:\\*[\"'`])?\]?"
_TYPED: Final = r":[ ]?[A-Za-z_][\w.\[\]| ]{0,40}?="
_SEPARATOR: Final = rf"\s{{0,8}}(?:=>|:?=|:|{_TYPED}|,(?=\s{{0,8}}b[\"']))\s{{0,8}}"
_MACHINE_MADE: Final = r"(?=[A-Za-z._~+/=:-]{0,200}[0-9])[A-Za-z0-9._~+/=:-]{16,}"

_value = re.compile(
    rf"{_QUOTE_OF_NAME}{_SEPARATOR}[bBrRfFuU]?(?:{_DOUBLE}|{_SINGLE})"
    rf"|(?P<quote>\\*\")\s{{0,8}}:\s{{0,8}}(?P<number>-?\d[\d.eE+-]{{3,}})"
    rf"|{_QUOTE_OF_NAME}={_SCHEME}{_NO_VALUE}{_NO_CODE}(?P<assigned>{_BARE})"
    rf"|{_QUOTE_OF_NAME}\s{{0,8}}(?:=>|:?=|:)\s{{0,8}}{_SCHEME}{_NO_VALUE}{_NO_CODE}{_MORE}(?P<told>{_BARE})"
    r"|(?:\s[^<>]{0,200})?>(?P<element>[^<>\"\\]{4,})<"
)
# The same, where more of it may be to come.
_goes_on = re.compile(
    rf"{_QUOTE_OF_NAME}\s{{0,8}}(?:(?:=>?|:=?|,|{_TYPED})\s{{0,8}}"
    r"(?:[bBrRfFuU]?\\*(?:\"(?:[^\"\\\r\n]|\\.)*|'(?:[^'\\\r\n]|\\.)*)\\?|(?:[A-Za-z]{5,9}\s{1,8})?[^\s\"'`&;<>]*)"
    r"|:[ ]?[A-Za-z_][\w.\[\]| ]{0,40}|(?:\s[^<>]{0,200})?>[^<>\"]*)?\Z"
)
_argument_goes_on = re.compile(r"\s{1,8}[^\s\"'`]*\Z")
_place_goes_on = re.compile(
    r"(?::/{0,2}|://[^\s\"'<>]*|(?<!\S)-(?:u|-user)(?:[ =]\S*)?|-----BEGIN[A-Z ]*(?:-*|-----[A-Za-z0-9+/=:,\s-]*))\Z"
)
_argument = re.compile(rf"\s{{1,8}}{_NO_CODE}{_MORE}(?P<told>{_BARE})")
_token = re.compile(rf"{_QUOTE_OF_NAME}(?:{_SEPARATOR}[bBrRfFuU]?(?:\\*[\"'])?)(?P<made>{_MACHINE_MADE})")
_scheme = re.compile(rf"\s{{1,8}}(?P<made>{_MACHINE_MADE})")

_ALWAYS: Final = re.compile("")
_NOT_IN_A_WORD: Final = re.compile(r"(?<![a-z0-9])\Z")
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
_name = re.compile(r"[\w-]*\Z")

_PLACES: Final = (
    re.compile(r"(?P<front>://[^\s/:@\"'<>\\]{0,256}:)[^\s/\"'<>\\]{1,256}(?=@)"),
    re.compile(
        r"(?P<front>[?&](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential)|key|code)=)[^\s&#\"'<>\\]{16,}"
    ),
    re.compile(r"(?P<front>-(?:u|-user)(?<!\S-u)(?<!\S--user)[ =][\"']?[^\s:\"'\\]{1,256}:)[^\s\"'\\]{4,}"),
)


def masked_by_name(text: str) -> str:
    """`text` with `***` in the place of values whose name says that they are secret. JSON stays JSON."""
    parts, done = [], 0
    for stem, start in _stems(text):
        if start < done:
            continue
        found = _found(text, stem, start)
        if found is None:
            continue
        group = found.lastgroup or ""
        quote = found["quote"] if group == "number" else ""
        parts += [text[done : found.start(group)], quote, HIDDEN, quote]
        done = found.end(group)
    text = "".join(parts) + text[done:]
    for place in _PLACES:
        text = place.sub(rf"\g<front>{HIDDEN}", text)
    return text


def begun(text: str) -> int | None:
    """Where a name, an address or a key block begins whose secret may go on beyond the end of `text`."""
    for stem, start in _stems(text):
        before = text[max(0, start - _LONGEST_NAME) : start]
        end = start + len(stem)
        known = stem in _SCHEMES or stem == "token" or _tells(before, text[start:end], stem)
        if known and (_goes_on.match(text, end) or _argument_goes_on.match(text, end)):
            return start - len(before) + len(before.rstrip(WORD))
    found = _place_goes_on.search(text)
    return None if found is None else found.start()


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
        return _scheme.match(text, end) if _NOT_IN_A_WORD.search(before.lower()) else None
    if _tells(before, text[start:end], stem):
        found = _value.match(text, end)
        if found is None:
            return _argument.match(text, end) if _flag.search(before) else None
        return None if _is_itself(found["assigned"], before + text[start:end]) else found
    if stem == "token" and _NOT_IN_A_WORD.search(before.lower()):
        return _token.match(text, end) or (_argument.match(text, end) if _flag.search(before) else None)
    return None


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
