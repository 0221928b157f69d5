"""Texts as SQLite's full-text index sees them, and questions as phrases that it always takes."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

from deepstrike.text import well_formed

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"
"""Stems English words and folds case and accents."""
MAX_TERMS: Final = 48
"""Further words of a question are not looked for."""
_LONGEST: Final = 64

# Scripts that are written without spaces: the tokenizer would take a whole sentence for one word.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
_CHARACTER = re.compile(f"([{_UNSPACED}])")
# Vowel signs of Indian scripts are part of a word, though no letters by themselves.
_TERM = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[\u0900-\u0dff])+")

_COMMON: Final = """
a about after again all also am an and any are as at be because been before being but by can could did do does
doing don for from further had has have having he her here hers him his how i if in into is isn it its itself
just ll me more most my no nor not now of off on once only or other our out over own please re s same shall
she should so some such t than that the their them then there these they this those through to too under until
up ve very was we were what when where which while who whom whose why will with would you your
"""
STOP_WORDS: Final = frozenset(_COMMON.split())
"""English words that say little; a question made of nothing else keeps them."""


def searchable(text: str) -> str:
    """`text` as it is put into an index: well formed, and with characters of unspaced scripts set apart.

    An entry is taken out of an index by what was put in, so this may change only together with the index's version.
    """
    return _CHARACTER.sub(r" \1 ", well_formed(text).replace("\0", " "))


def terms(question: str) -> list[str]:
    """The words to look for, each once, in their order; stop words only if there are no others."""
    return _telling(question)[:MAX_TERMS]


def pieces(text: str) -> list[str]:
    """All words of a text as `terms` has them; of unspaced scripts each two characters."""
    return [piece for word in _telling(text) for piece in _phrases(word)]


def phrases(question: str) -> list[str]:
    """What to look for as FTS5 takes it, each a quoted phrase: words, and pairs of characters of unspaced scripts.

    Whatever stands in the question, quotes and operators included, is only words here.
    """
    return [f'"{phrase}"' for term in terms(question) for phrase in _phrases(term)][:MAX_TERMS]


def _telling(text: str) -> list[str]:
    found = dict.fromkeys(word.lower()[:_LONGEST] for word in _TERM.findall(normalize("NFC", well_formed(text))))
    return [word for word in found if word not in STOP_WORDS] or list(found)


def _phrases(term: str) -> list[str]:
    """A word is looked for as it is, a run of unspaced characters as each two that follow one another."""
    if not _CHARACTER.match(term):
        return [term]
    return [" ".join(term[at : at + 2]) for at in range(max(len(term) - 1, 1))]
