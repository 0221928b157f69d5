"""The notations in which a value stands behind its name: JSON, code, settings, command lines, headers, XML, addresses.

Each has one expression for the value, and one that fits to the end of a text where it may go on beyond it.
"""

from __future__ import annotations

import re
from typing import Final

# White space in JSON, also in JSON within JSON.
_SPACE: Final = r"(?:\s|\\+[nrt]){0,64}"


def _characters(depth: str) -> str:
    """What a string holds in JSON, or in JSON within JSON, whose quotes stand behind the backslashes of group `depth`.

    Within it a backslash stands as twice one more than these; a quote behind whole backslashes and those of `depth`
    ends it, one behind more belongs to it.
    """
    return rf"(?:[^\"\\]|\\+(?![\"\\])|(?!{_backslashes(depth)}(?P={depth})\")(?P={depth})\\+\")"


def _backslashes(depth: str) -> str:
    return rf"(?:(?P={depth})\\(?P={depth})\\)*"


def _rest(depth: str, name: str, unlike: str = "") -> str:
    """A string behind its first quote, to its last; `name` is the group of what stands between them."""
    inner = rf"{_characters(depth)}{{4,}}{_backslashes(depth)}"
    return rf"{unlike}(?P<{name}>{inner})(?P={depth})\""


# Where a string of JSON ends like a name, `"password:"`, its last quote looks like the first of a value. What stands
# behind it tells.
_JSON_VALUE: Final = r"(?:\\*\"|[\[{]|-?\d|true\b|false\b|null\b)"
_NOT_THE_LAST: Final = rf"(?!{_SPACE}(?:[,:]{_SPACE}{_JSON_VALUE}|[}}\]](?:[\s,}}\]\"'\\;)]|\Z)|\Z))"
_DOUBLE: Final = rf"(?P<depth>\\*)\"{_rest('depth', 'double', _NOT_THE_LAST)}"
# May stand in JSON: a quotation mark within it is its own unless it looks like the end of a string there.
_NO_STRUCTURE: Final = r"(?!(?:[ \t]|\\+t){0,64}(?:[,:}\]\r\n\"]|\\+[nr\"]|\Z))"
_IN_SINGLE: Final = rf"(?:[^'\"\\\r\n]|\\*\"{_NO_STRUCTURE}|\\+[^\"\\])"
_SINGLE: Final = rf"\\*'(?P<single>{_IN_SINGLE}{{4,}})(?:\\*'|(?=\\*\"))"

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
_TELLS: Final = r"\s{0,8}(?:=>|:?=|:)\s{0,8}"
_MACHINE_MADE: Final = r"(?=[A-Za-z._~+/=:-]{0,200}[0-9])[A-Za-z0-9._~+/=:-]{16,}"
_PREFIX: Final = r"[bBrRfFuU]?"
_TRIPLE: Final = r"(?:(?P<three>\\*)\"(?P=three)\"(?=(?P=three)\")|''(?='))?"
# Behind a name in quotes a number may be one of JSON.
_NO_NUMBER: Final = rf"(?!-?\d[\d.eE+-]{{0,400}}{_SPACE}[,}}\]])"
_TOLD: Final = rf"{_SCHEME}{_NO_VALUE}{_NO_CODE}{_MORE}"

VALUE: Final = re.compile(
    rf"(?P<around>\\*)\"\]?{_SEPARATOR}{_PREFIX}(?P=around)\"{_rest('around', 'string')}"
    rf"|{_QUOTE_OF_NAME}{_SEPARATOR}{_PREFIX}{_TRIPLE}(?:{_DOUBLE}|{_SINGLE})"
    rf"|(?P<quote>\\*\")\s{{0,8}}:\s{{0,8}}(?P<number>-?\d[\d.eE+-]{{3,}})"
    rf"|{_QUOTE_OF_NAME}={_SCHEME}{_NO_VALUE}{_NO_CODE}(?P<assigned>{_BARE})"
    rf"|\\*\"\]?{_TELLS}{_NO_NUMBER}{_TOLD}(?P<noted>{_BARE})"
    rf"|(?:\\*['`])?\]?{_TELLS}{_TOLD}(?P<told>{_BARE})"
)
ELEMENT: Final = re.compile(r"(?:\s[^<>]{0,200})?>(?P<element>[^<>\"\\]{4,})<")
ARGUMENT: Final = re.compile(rf"\s{{1,8}}{_NO_CODE}{_MORE}(?P<told>{_BARE})")
# As programs are given their arguments in lists.
NEXT_ARGUMENT: Final = re.compile(
    rf"(?P<depth>\\*)\",{_SPACE}(?P=depth)\"(?!-){_rest('depth', 'double')}"
    rf"|\\*',\s{{0,40}}\\*'(?!-)(?P<single>{_IN_SINGLE}{{4,}})\\*'"
)
TOKEN: Final = re.compile(
    rf"(?P<around>\\*)\"\]?{_SEPARATOR}{_PREFIX}(?P=around)\"(?P<string>{_MACHINE_MADE})"
    rf"|{_QUOTE_OF_NAME}{_SEPARATOR}{_PREFIX}{_TRIPLE}(?:\\*'|\\*\"{_NOT_THE_LAST})(?P<quoted>{_MACHINE_MADE})"
    rf"|\\*\"\]?{_SEPARATOR}{_NO_NUMBER}(?P<noted>{_MACHINE_MADE})"
    rf"|(?:\\*['`])?\]?{_SEPARATOR}(?P<made>{_MACHINE_MADE})"
)
SCHEME: Final = re.compile(rf"\s{{1,8}}(?P<made>{_MACHINE_MADE})")

# The same, where text ends that may go on: whatever comes next could make it a value, or a longer one.
_OPEN: Final = rf"(?:(?P<open>\\*)\"{_characters('open')}*\\*|\\*'(?:[^'\r\n]|(?<=\\)')*|\\*(?:\"\\*\"|'\\*')?\\*)"
_WORDS: Final = r"(?:[A-Za-z]{5,9}\s{1,8})?[^\s\"'`&;<>]*"
GOES_ON: Final = re.compile(
    r"(?:\\*|(?:\\*[\"'`])?\]?\s{0,8}(?:"
    rf"(?:=>?|:=?|{_TYPED})\s{{0,8}}(?:{_PREFIX}{_TRIPLE}{_OPEN}|{_WORDS})|,\s{{0,8}}b?(?:\\*[\"'](?:[^\"'\r\n]|\\.)*)?"
    r"|:[ ]?[A-Za-z_][\w.\[\]| ]{0,40})?)\Z"
)
ELEMENT_GOES_ON: Final = re.compile(r"(?:\s[^<>]{0,200})?(?:>[^<>\"\\]*)?\Z")
ARGUMENT_GOES_ON: Final = re.compile(
    rf"(?:\s{{1,8}}[^\s\"'`]*|\\*[\"'],{_SPACE}\\*(?:(?P<open>\\*)\"{_characters('open')}*\\*|'(?:[^'\r\n]|(?<=\\)')*)?)\Z"
)
SCHEME_GOES_ON: Final = re.compile(r"\s{1,8}[A-Za-z0-9._~+/=:-]*\Z")
PLACE_GOES_ON: Final = re.compile(
    r"(?::/{0,2}|://[^\s\"'<>]*|[?&][\w-]*(?:=[^\s&#\"'<>\\]*)?"
    r"|(?<![A-Za-z0-9_.-])-(?:u|-user)(?:[ =][\"']?[^\s\"'\\]*)?"
    r"|-----BEGIN[A-Z ]*(?:-*|-----(?:[A-Za-z0-9+/=:,\s-]|\\+[nr])*\\*))\Z"
)

PLACES: Final = (
    re.compile(r"(?P<front>://[^\s/:@\"'<>\\]{0,256}:)[^\s/\"'<>\\]{1,256}(?=@)"),
    re.compile(
        r"(?P<front>[?&](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential)|key|code)=)[^\s&#\"'<>\\]{16,}"
    ),
    re.compile(
        r"(?P<front>(?<![A-Za-z0-9_.-])-(?:u|-user)[ =][\"']?"
        r"(?!\d+:\d+(?![^\s\"'\\]))[^\s:\"'\\]{1,256}:)[^\s\"'\\]{4,}"
    ),
)
