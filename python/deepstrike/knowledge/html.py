"""The words of HTML, read in one pass whatever the file holds.

A parser that goes back at what is never closed takes time by the square of a file's size: minutes for a few kilobytes.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_HIDDEN: Final = ("script", "style", "template", "noscript", "svg")
_RAW: Final = ("script", "style")
"""What stands in these is no markup until they end."""
_BLOCKS: Final = """
address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr
li main nav ol p pre section table td th tr ul
"""
_BREAKS: Final = frozenset(_BLOCKS.split())
_NAME = re.compile(r"</?([a-zA-Z][^\s/>]{0,40})")
# What ends a tag, or begins a value in which `>` is only a character.
_STEP = re.compile(r">|=\s*([\"'])")


def words(text: str) -> str:
    """What a reader sees; a NUL, of which the text has none, stands for a break, `#` before headings."""
    pieces: list[str] = []
    hidden, depth = "", 0
    for said, tag, closes in _tokens(text):
        if not hidden:
            pieces.append(said)
        if hidden:
            depth += (-1 if closes else 1) if tag == hidden else 0
            hidden = hidden if depth else ""
        elif tag in _HIDDEN and not closes:
            hidden, depth = tag, 1
        else:
            pieces.append(_break(tag, closes))
    return "".join(pieces)


def _break(tag: str, closes: bool) -> str:
    if tag == "title":
        return "\0\0" if closes else "\0# "
    if tag not in _BREAKS:
        return ""
    level = int(tag[1]) if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit() else 0
    return "\0\0" if closes or not level else f"\0\0{'#' * level} "


def _tokens(text: str) -> Iterator[tuple[str, str, bool]]:
    """Each tag with the text before it, the tag's name in small letters, and whether it closes; at last the rest."""
    at = begin = 0
    while (at := text.find("<", at)) >= 0:
        found = _NAME.match(text, at)
        if found is None:
            end = _aside(text, at)
            if end == at + 1:  # only a character
                at = end
                continue
            yield unescape(text[begin:at]), "", False
        else:
            tag, closes = found[1].lower(), text[at + 1] == "/"
            end = _tag_end(text, found.end())
            if end == len(text) and not text.endswith(">"):
                break  # never closed: all of it is text
            yield unescape(text[begin:at]), tag, closes
            if tag in _RAW and not closes:
                closing = re.compile(rf"</{tag}", re.IGNORECASE).search(text, end)
                end = len(text) if closing is None else closing.start()
        at = begin = end
    yield unescape(text[begin:]), "", False


def _aside(text: str, at: int) -> int:
    """Where a comment, a declaration or an instruction ends that begins here; the next character where none does."""
    if text.startswith("<!--", at):
        return _behind(text, "-->", at + 2)
    if text.startswith(("<!", "<?", "</"), at):
        return _behind(text, ">", at)
    return at + 1


def _tag_end(text: str, at: int) -> int:
    while (step := _STEP.search(text, at)) is not None:
        if step[1] is None:
            return step.end()
        at = _behind(text, step[1], step.end())
    return len(text)


def _behind(text: str, mark: str, at: int) -> int:
    """Behind the next mark; what is never closed goes to the end of the text."""
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)
