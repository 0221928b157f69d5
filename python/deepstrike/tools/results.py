"""What a tool returned, as content for the model: bounded, well formed, and never a made-up text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import msgspec

from deepstrike.text import well_formed
from deepstrike.wire.message import File, Image, Part, Text

KEPT_BYTES: Final = 16 * 1024 * 1024
"""At most this much text of one result is kept, in bytes of UTF-8."""

_PART = (Text, Image, File)


class NoText(TypeError):
    """A value that is nested too deeply, or whose `__str__` fails: nothing true could be told of it."""

    def __init__(self, value: object, error: Exception) -> None:
        name = type(error).__name__
        super().__init__(
            f"the tool ran, but a {type(value).__name__} in what it returned cannot be turned into text ({name}); "
            "return a string, or values that JSON can hold"
        )


def to_parts(value: object) -> tuple[Part, ...]:
    """A tool's value as content.

    A string stays as it is; `Text`, `Image`, `File` and lists of them (strings among them too) pass; `bytes` are read
    as UTF-8. Anything else becomes compact JSON: `None` is `null`, dataclasses and pydantic models are objects, dates
    ISO text, sets arrays, NaN is null; what has no JSON form is `str(value)`. Lone surrogates are replaced. Of more
    than 16 MiB of text the beginning is kept and a marker tells how much was cut. Raises `NoText`.
    """
    if isinstance(value, str):
        return (Text(bounded(value)),)
    kept = Kept()
    for item in value if _holds_parts(value) else (value,):  # type: ignore[attr-defined]
        kept.add(item) if isinstance(item, _PART) else kept.add_text(as_text(item))
    return kept.parts()


def _holds_parts(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and any(isinstance(item, _PART) for item in value)
        and all(isinstance(item, (*_PART, str)) for item in value)
    )


def as_text(value: object) -> str:
    """A string as it is, `bytes` as UTF-8, anything else as JSON or, failing that, `str(value)`. Raises `NoText`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    try:
        return _ENCODER.encode(value).decode()
    except Exception:
        return _by_pydantic(value)


def as_json(value: object) -> str:
    """Any value as JSON text, well formed; what has no JSON form is its text in quotes. Raises `NoText`."""
    text = as_text(value)
    if not isinstance(value, str | bytes | bytearray):
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return well_formed(text)
    return json.dumps(well_formed(text), ensure_ascii=False)


def _by_pydantic(value: object) -> str:
    """For what msgspec leaves: odd keys, cycles, lone surrogates inside, objects of any class."""
    from pydantic_core import to_jsonable_python

    try:
        plain = to_jsonable_python(value, fallback=str, inf_nan_mode="null", serialize_unknown=True)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except Exception:
        return _by_json(value)


def _by_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_by_str)
    except NoText:
        raise
    except Exception:
        return _by_str(value)


def _by_str(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        raise NoText(value, error) from None


def _encode_unknown(value: object) -> object:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str, inf_nan_mode="null")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_unknown)


def bounded(text: str) -> str:
    """The text well formed and within `KEPT_BYTES`, cut at a character boundary with a marker."""
    if len(text) <= KEPT_BYTES // 4:
        return text if text.isascii() else well_formed(text)
    kept = Kept()
    kept.add_text(text)
    return kept.text()


@dataclass(slots=True)
class Kept:
    """A result as it grows. Beyond `KEPT_BYTES` text is counted and let go, so memory stays bounded."""

    _pieces: list[str] = field(default_factory=list)
    _parts: list[Part] = field(default_factory=list)
    _bytes: int = 0
    _cut: int = 0

    def add_text(self, text: str) -> None:
        """Append text to the current run of text."""
        if not text.isascii():
            text = well_formed(text)
        encoded = text.encode()
        size = len(encoded)
        room = KEPT_BYTES - self._bytes
        if self._cut:
            self._cut += size
            return
        if size > room:
            text = encoded[:room].decode("utf-8", "ignore")
            size = len(text.encode())
            self._cut = len(encoded) - size
        if text:
            self._bytes += size
            self._pieces.append(text)

    def add(self, part: Part) -> None:
        """Append a content part of its own."""
        if isinstance(part, Text):
            self._close()
            self.add_text(part.text)
            self._close()
        else:
            self._close()
            self._parts.append(part)

    @property
    def at_line_start(self) -> bool:
        """True if nothing was added yet, or the text so far ends a line."""
        return not self._pieces or self._pieces[-1].endswith("\n")

    def text(self) -> str:
        """The current run of text, with the marker where something was cut."""
        text = "".join(self._pieces)
        if not self._cut:
            return text
        return f"{text}\n[cut here: {self._cut} more bytes; of one result at most {KEPT_BYTES} bytes are kept]"

    def parts(self) -> tuple[Part, ...]:
        """Everything; at least one part."""
        marker = self._cut > 0
        if self._pieces or marker or not self._parts:
            return (*self._parts, Text(self.text()))
        return tuple(self._parts)

    def _close(self) -> None:
        if self._pieces:
            self._parts.append(Text("".join(self._pieces)))
            self._pieces.clear()
