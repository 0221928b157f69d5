"""The text of files, with its headings marked as Markdown has them."""

from __future__ import annotations

import codecs
import io
import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES: Final = 16 * 1024 * 1024
"""Larger files are left out."""
_SNIFFED: Final = 8192
_HTML: Final = (".html", ".htm", ".xhtml")


class Unreadable(Exception):
    """The file has no text that can be read; the message is the reason. `may_pass`: the same file may have it later."""

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


def text_of(path: str, data: bytes) -> str:
    """The text of a file by the ending of its path: HTML, PDF (each page under a heading), else UTF-8 or UTF-16.

    Raises `Unreadable`.
    """
    ending = path[path.rfind(".") :].lower() if "." in path else ""
    if ending == ".pdf":
        return _pdf(data)
    text = _decoded(data)
    return _html(text) if ending in _HTML else text


def has_lines(path: str) -> bool:
    """Whether the lines of a file's text are those that a person sees in the file."""
    return not path.lower().endswith((".pdf", *_HTML))


def _decoded(data: bytes) -> str:
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = data.decode("utf-16")
        else:
            if b"\0" in data[:_SNIFFED]:
                raise Unreadable("is binary")
            text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is no UTF-8 text (byte {error.start})") from None
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")


class _Page(Protocol):
    def extract_text(self) -> str: ...


class _Reader(Protocol):
    @property
    def pages(self) -> Sequence[_Page]: ...


def _pdf(data: bytes) -> str:
    if find_spec("pypdf") is None:
        raise Unreadable("is a PDF, which is read only if pypdf is installed: pip install pypdf", may_pass=True)
    try:
        reader: _Reader = import_module("pypdf").PdfReader(io.BytesIO(data))
        pages = [page.extract_text() for page in reader.pages]
    except Exception as error:  # a damaged file raises whatever the library meets in it
        raise Unreadable(f"is a PDF that cannot be read: {type(error).__name__}: {error}") from error
    return "\n\n".join(f"# page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text.strip())


def _html(text: str) -> str:
    from deepstrike.knowledge.html import words

    lines = (re.sub(r"[ \t\n\f\xa0]+", " ", line).strip() for line in words(text).split("\0"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
