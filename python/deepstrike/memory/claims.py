"""When two texts say the same, and when they are about the same thing.

Only words are looked at, and where in doubt two texts have nothing to do with each other: a fact too many does less
harm than one that was taken for outdated.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SPACE = re.compile(r"\s+")
_ATTRIBUTES: Final = (
    "name|full name|nickname|email|email address|e-mail|phone|phone number|number|address|age|birthday|birth date|"
    "time ?zone|timezone|locale|language|native language|city|home city|hometown|country|employer|company|job|"
    "job title|title|role|occupation|profession|team|manager|boss|budget|deadline|due date|port|version|status|"
    "priority|salary|password|username|user name|editor|operating system|os|shell|browser|currency|diet|"
    "(?:favou?rite|preferred|main|primary|current|default) \\w+(?: \\w+)?"
)
_EMPTY: Final = """
note notes todo fact facts user assistant preference preferences insight important
warning remember reminder example decision lesson rule tip info summary update
"""
_SAYING_NOTHING: Final = frozenset(_EMPTY.split())
_LABEL = re.compile(r"([\w'’ ./-]{1,60}?)\s*(?::|=)\s+\S.*")
_ATTRIBUTE = re.compile(rf"((?:.{{1,60}}? )?(?:{_ATTRIBUTES})) (?:is now|is|are|was|has become|became|changed to) .+")
_PREDICATE = re.compile(
    r"(.{1,60}?) (?:now |currently )?"
    r"(?:(?P<place>lives? in|resides? in|moved to|is based in|is living in)"
    r"|(?P<work>works? (?:at|for)|is employed (?:at|by)|is working (?:at|for))"
    r"|(?P<name>is called|is named|goes by)"
    r"|(?P<born>was born (?:on|in))"
    r"|(?P<mate>is married to|is engaged to)) .+"
)
_NEGATION = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|does not|doesn['’]t|do not|don['’]t|did not|didn['’]t|never|not)\b"
)


def folded(text: str) -> str:
    """What a text says regardless of case, width, spaces and the stop at its end."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip().rstrip(".!;, ")


def tidy(text: str) -> str:
    """A text on one line, without blanks around it."""
    return _SPACE.sub(" ", text).strip()


def subject(text: str) -> str:
    """What a text is about, so far that a later text about the same must replace it.

    `label: value` is about the label. "The user's time zone is …" is about the attribute, for attributes that have one
    value at a time; so are living, working, being called or married. Any other text is about itself, and about its
    denial: "User no longer drinks coffee" is about what "User drinks coffee" is about.
    """
    plain = folded(text)
    if (labelled := _LABEL.fullmatch(plain)) is not None and labelled[1] not in _SAYING_NOTHING:
        return f"of {_owner(labelled[1])}"
    if (attribute := _ATTRIBUTE.fullmatch(plain)) is not None:
        return f"of {_owner(attribute[1])}"
    if (predicate := _PREDICATE.fullmatch(plain)) is not None:
        return f"{predicate.lastgroup} {_owner(predicate[1])}"
    return f"that {' '.join(_root(word) for word in _NEGATION.sub(' ', plain).split())}"


def _owner(words: str) -> str:
    return re.sub(r"^(?:the|a|an) ", "", words.replace("’", "'").strip())


def _root(word: str) -> str:
    """Without the ending that a verb loses when it is denied: `drinks`, `does not drink`."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
