"""Where two values of a log differ, field by field."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.records import Json

_MOST = 8
_WIDTH = 160
_BEFORE = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not the same: where it stands (`config.limits.max_turns`), and both values as JSON text.

    A value that is not there at all is the empty text. Long texts are cut around the place where they part.
    """

    path: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.path}: {self.left or '(nothing)'} ≠ {self.right or '(nothing)'}"


def differences(left: object, right: object, most: int = _MOST) -> tuple[Difference, ...]:
    """The first `most` fields in which two structs, or other values with a JSON form, differ; () if they are equal."""
    found: list[Difference] = []
    for difference in _walk("", _plain(left), _plain(right)):
        if len(found) == most:
            break
        found.append(difference)
    return tuple(found)


def _plain(value: object) -> Json:
    plain: Json = msgspec.json.decode(msgspec.json.encode(value))
    return plain


class _Nothing:
    """Stands for a field that is not there."""


_NOTHING = _Nothing()


def _walk(path: str, left: Json | _Nothing, right: Json | _Nothing) -> Iterator[Difference]:
    if isinstance(left, dict) and isinstance(right, dict) and left.get("type") == right.get("type"):
        for name in dict.fromkeys([*left, *right]):
            below = f"{path}.{name}" if path else name
            yield from _walk(below, left.get(name, _NOTHING), right.get(name, _NOTHING))
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            yield from _walk(f"{path}[{index}]", _item(left, index), _item(right, index))
    elif type(left) is not type(right) or left != right:
        yield _difference(path or "(all)", left, right)


def _item(items: list[Json], index: int) -> Json | _Nothing:
    return items[index] if index < len(items) else _NOTHING


def _difference(path: str, left: Json | _Nothing, right: Json | _Nothing) -> Difference:
    a, b = _written(left), _written(right)
    start = max(0, _common(a, b) - _BEFORE) if max(len(a), len(b)) > _WIDTH else 0
    return Difference(path, _cut(a, start), _cut(b, start))


def _written(value: Json | _Nothing) -> str:
    return "" if isinstance(value, _Nothing) else json.dumps(value, ensure_ascii=False)


def _common(left: str, right: str) -> int:
    """How many characters both begin with."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))


def _cut(text: str, start: int) -> str:
    shown = text[start : start + _WIDTH]
    return ("… " if start else "") + shown + (" …" if start + _WIDTH < len(text) else "")
