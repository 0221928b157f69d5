"""What a docstring says of each parameter: Google, NumPy and Sphinx style, read by one small parser."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PARAMETER_HEADS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
_OUTCOME_HEADS = frozenset({"returns", "return", "raises", "raise", "yields", "yield", "warns", "except", "exceptions"})
_OTHER_HEADS = frozenset(
    {"attributes", "example", "examples", "note", "notes", "references", "see also", "todo", "warning", "warnings"}
)
_GOOGLE_HEAD = re.compile(r"([A-Za-z][A-Za-z ]*):\s*$")
_GOOGLE_ENTRY = re.compile(r"(\*{0,2}\w+)\s*(?:\([^)]*\)|\[[^\]]*\])?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r":(\w+)\s*([^:]*):\s*(.*)$")
_SPHINX_PARAMETER = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_SPHINX_OUTCOME = frozenset({"type", "return", "returns", "rtype", "raise", "raises", "except", "exception", "yields"})


@dataclass(frozen=True, slots=True)
class Described:
    """A docstring taken apart: the text before and between the sections, and a line for each parameter."""

    text: str
    parameters: Mapping[str, str]


@dataclass(slots=True)
class _Reading:
    """Where the reader stands: the section it is in, and what it has found so far."""

    names: Collection[str]
    prose: list[str] = field(default_factory=list)
    found: dict[str, list[str]] = field(default_factory=dict)
    section: str = ""
    margin: int = 0
    entry_margin: int = -1
    current: tuple[str, ...] = ()

    def open(self, section: str, margin: int) -> None:
        self.section, self.margin, self.entry_margin, self.current = section, margin, -1, ()

    def enter(self, names: tuple[str, ...], text: str) -> None:
        self.current = names
        for name in names:
            if name in self.names:
                self.found.setdefault(name, []).append(text)

    def go_on(self, text: str) -> None:
        for name in self.current:
            if name in self.found:
                self.found[name].append(text)


def describe(docstring: str | None, names: Collection[str]) -> Described:
    """Take `docstring` apart. Only `names` begin an entry, so a continuation line with a colon stays a continuation.

    The text keeps all but the sections on parameters, results and exceptions.
    """
    if not docstring:
        return Described("", {})
    reading = _Reading(names)
    lines = inspect.cleandoc(docstring).splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        _read_line(reading, line, following)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(reading.prose)).strip()
    return Described(text, {name: " ".join(filter(None, parts)).strip() for name, parts in reading.found.items()})


def _read_line(reading: _Reading, line: str, following: str) -> None:
    stripped = line.strip()
    margin = len(line) - len(line.lstrip())
    if _opens_section(reading, stripped, margin, following) or _sphinx_line(reading, stripped, margin):
        return
    if reading.section == "google" and stripped and margin <= reading.margin:
        reading.open("", 0)
    match reading.section:
        case "google":
            _google_line(reading, stripped, margin)
        case "numpy":
            _numpy_line(reading, stripped, margin)
        case "sphinx":
            _sphinx_continuation(reading, line, stripped)
        case "dropped":
            if stripped and margin <= reading.margin:
                reading.open("", 0)
                reading.prose.append(line)
        case "numpy dropped":
            pass
        case _:
            reading.prose.append(line)


def _opens_section(reading: _Reading, stripped: str, margin: int, following: str) -> bool:
    if len(following) >= 3 and set(following) <= {"-", "="} and stripped:
        return _opens_numpy_section(reading, stripped, margin)
    head = _GOOGLE_HEAD.fullmatch(stripped)
    inside = reading.section in {"google", "dropped"} and margin > reading.margin
    if head is None or inside or reading.section.startswith("numpy"):
        return False
    word = head[1].lower()
    if word in _PARAMETER_HEADS:
        reading.open("google", margin)
    elif word in _OUTCOME_HEADS:
        reading.open("dropped", margin)
    else:
        return False
    return True


def _opens_numpy_section(reading: _Reading, stripped: str, margin: int) -> bool:
    word = stripped.rstrip(":").lower()
    if word in _PARAMETER_HEADS:
        reading.open("numpy", margin)
    elif word in _OUTCOME_HEADS:
        reading.open("numpy dropped", margin)
    elif word in _OTHER_HEADS:
        reading.open("", margin)
        return False
    else:
        return False
    return True


def _google_line(reading: _Reading, stripped: str, margin: int) -> None:
    if not stripped:
        return
    if reading.entry_margin < 0:
        reading.entry_margin = margin
    entry = _GOOGLE_ENTRY.match(stripped) if margin <= reading.entry_margin else None
    if entry and (entry[1] in reading.names or entry[1].startswith("*")):
        reading.enter((entry[1],), entry[2])
    else:
        reading.go_on(stripped)


def _numpy_line(reading: _Reading, stripped: str, margin: int) -> None:
    if not stripped or set(stripped) <= {"-", "="}:
        return
    entry = _NUMPY_ENTRY.match(stripped) if margin <= reading.margin else None
    if entry:
        reading.enter(tuple(name.strip() for name in entry[1].split(",")), "")
    else:
        reading.go_on(stripped)


def _sphinx_line(reading: _Reading, stripped: str, margin: int) -> bool:
    field_ = _SPHINX_FIELD.match(stripped)
    if field_ is None:
        return False
    word, subject, text = field_[1], field_[2].split(), field_[3]
    if word in _SPHINX_PARAMETER and subject:
        reading.open("sphinx", margin)
        reading.enter((subject[-1],), text)
    elif word in _SPHINX_OUTCOME:
        reading.open("sphinx", margin)
    else:
        return False
    return True


def _sphinx_continuation(reading: _Reading, line: str, stripped: str) -> None:
    if stripped and (line[:1].isspace() or reading.current):
        reading.go_on(stripped)
    else:
        reading.open("", 0)
        reading.prose.append(line)
