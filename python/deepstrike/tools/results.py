"""What a tool returned, as content for the model: bounded, well formed, and never a made-up text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import msgspec

from deepstrike.text import well_formed
from deepstrike.wire.message import File, Image, Part, Text

KEPT_BYTES: Final = 16 * 1024 * 1024
"""At most this much of one result is kept: its texts, images, files and their names together, in bytes of UTF-8."""

_AROUND_BYTES: Final = 64
"""What a part takes beside its text, so that no number of tiny ones goes beyond the bound."""

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
    than 16 MiB in all the beginning is kept, whole images and files of it, and a marker tells what is missing. Raises
    `NoText`.
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
    """A result as it grows. Beyond `KEPT_BYTES` what comes is counted and let go, so memory stays bounded.

    Text is cut. An image or file that does not fit is left out, with all that follow it; text goes on.
    """

    _pieces: list[str] = field(default_factory=list)
    _parts: list[Part] = field(default_factory=list)
    _bytes: int = 0
    _cut: int = 0
    _left_out: int = 0
    _left_out_bytes: int = 0

    def add_text(self, text: str) -> None:
        """Append text to the current run of text."""
        if not text.isascii():
            text = well_formed(text)
        encoded = text.encode()
        size = len(encoded)
        if self._cut:
            self._cut += size
            return
        if size > self._room:
            text = encoded[: self._room].decode("utf-8", "ignore")
            size = len(text.encode())
            self._cut = len(encoded) - size
        if text:
            self._bytes += size
            self._pieces.append(text)

    def add(self, part: Part) -> None:
        """Append a content part of its own."""
        self._close()
        if isinstance(part, Text):
            self.add_text(part.text)
            self._close()
            return
        size = _size(part)
        if self._cut or self._left_out or not 0 < self._room >= size:
            self._left_out += 1
            self._left_out_bytes += size
        else:
            self._append(part, size)

    @property
    def at_line_start(self) -> bool:
        """True if nothing was added yet, or the text so far ends a line."""
        return not self._pieces or self._pieces[-1].endswith("\n")

    def text(self) -> str:
        """The current run of text, with the marker where something is missing."""
        text, marker = "".join(self._pieces), self._marker()
        return f"{text}\n{marker}" if text and marker else text + marker

    def parts(self) -> tuple[Part, ...]:
        """Everything; at least one part."""
        text = self.text()
        return (*self._parts, Text(text)) if text or not self._parts else tuple(self._parts)

    @property
    def _room(self) -> int:
        return max(0, KEPT_BYTES - self._bytes)

    def _marker(self) -> str:
        cut = f"cut here: {self._cut} more bytes" if self._cut else ""
        count = f"{self._left_out} images or files" if self._left_out > 1 else "1 image or file"
        left_out = f"left out: {count} of {self._left_out_bytes} bytes" if self._left_out else ""
        missing = "; ".join(each for each in (cut, left_out) if each)
        return f"[{missing}; of one result at most {KEPT_BYTES} bytes are kept]" if missing else ""

    def _close(self) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._append(Text(text), 0)

    def _append(self, part: Part, size: int) -> None:
        self._parts.append(part)
        self._bytes += size + _AROUND_BYTES


def _size(part: Image | File) -> int:
    texts = (part.media_type, part.data, part.url if isinstance(part, Image) else part.name)
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)
