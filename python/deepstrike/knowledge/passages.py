"""Texts cut into passages that can be shown by themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIZE: Final = 1200
"""About how many characters a passage has."""
OVERLAP: Final = 240
"""Up to so many characters of whole paragraphs stand at the end of one passage and at the beginning of the next."""
_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_FENCE = re.compile(r"\s*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text, its lines counted from 1, and the nearest heading before it, empty if there is none."""

    heading: str
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together: a paragraph, or what fits of it."""

    heading: str
    first: int
    last: int
    text: str


def passages(text: str) -> list[Passage]:
    """Cuts at headings, and between paragraphs where a section is long; a long paragraph is cut between its lines.

    What stands in fenced code is no heading. Every word of the text is in a passage.
    """
    found: list[Passage] = []
    current: list[_Block] = []
    for block in _blocks(text):
        if current and block.heading != current[-1].heading:
            found.append(_joined(current))
            current = []
        elif current and _length(current) + len(block.text) > SIZE:
            found.append(_joined(current))
            current = _tail(current, SIZE - len(block.text))
        current.append(block)
    if current:
        found.append(_joined(current))
    return found


def _tail(blocks: Sequence[_Block], room: int) -> list[_Block]:
    """The last blocks that are short enough to be repeated."""
    kept: list[_Block] = []
    for block in reversed(blocks[1:]):
        if _length(kept) + len(block.text) > min(OVERLAP, room):
            break
        kept.insert(0, block)
    return kept


def _joined(blocks: Sequence[_Block]) -> Passage:
    text = "\n\n".join(block.text for block in blocks)
    return Passage(blocks[0].heading, blocks[0].first, blocks[-1].last, text)


def _length(blocks: Sequence[_Block]) -> int:
    return sum(len(block.text) + 2 for block in blocks)


def _blocks(text: str) -> Iterator[_Block]:
    """Paragraphs; a heading stands with the paragraph below it, so that it is never alone unless nothing follows."""
    heading, fenced = "", False
    lines: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= _FENCE.match(line) is not None
        found = "" if fenced else _heading(line)
        if found:
            yield from _cut(heading, first, lines)
            heading, lines = found, []
        if not lines:
            first = number
        if line.strip() or fenced:
            lines.append(line)
        elif lines and not (len(lines) == 1 and _heading(lines[0])):
            yield from _cut(heading, first, lines)
            lines = []
        elif lines:
            lines.append(line)
    yield from _cut(heading, first, lines)


def _heading(line: str) -> str:
    """The words of a heading, without the marks that may close it; empty where the line is none."""
    found = _HEADING.match(line)
    if found is None:
        return ""
    words = line[found.end() :]
    return words.rstrip("#").rstrip(" \t") or words[0]


def _cut(heading: str, first: int, lines: Sequence[str]) -> Iterator[_Block]:
    """The lines in blocks of at most `SIZE` characters."""
    piece: list[str] = []
    start = end = first
    for number, line in _short_lines(first, lines):
        if piece and sum(map(len, piece)) + len(piece) + len(line) > SIZE:
            yield _Block(heading, start, end, "\n".join(piece))
            piece = []
        if not piece:
            start = number
        piece.append(line)
        end = number if line.strip() else end
    if any(line.strip() for line in piece):
        yield _Block(heading, start, end, "\n".join(piece).rstrip())


def _short_lines(first: int, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, first):
        rest = line
        while len(rest) > SIZE:
            at = rest.rfind(" ", SIZE // 2, SIZE) + 1 or SIZE
            yield number, rest[:at]
            rest = rest[at:]
        yield number, rest
