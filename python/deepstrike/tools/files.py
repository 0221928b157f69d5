"""`read_file`: text files below a root, read in pages."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError, ToolError
from deepstrike.tools.decorator import tool
from deepstrike.tools.rooted import Outside, Refused, open_below

if TYPE_CHECKING:
    from deepstrike.tools.definition import Tool

PAGE_BYTES: Final = 64 * 1024
MAX_PAGE_BYTES: Final = 1024 * 1024
_SHOWN: Final = 200

_DESCRIPTION: Final = (
    "Read a text file (UTF-8). Paths are relative to the root directory; nothing outside of it can be read. "
    "Long files come in pages: the last line then says how to go on."
)


def read_file_in(root: str | os.PathLike[str]) -> Tool[..., str]:
    """A `read_file` tool for the files below `root`, which is made absolute now.

    Raises `ConfigError` if `root` is no directory.
    """
    base = Path(root).expanduser().absolute()
    if not base.is_dir():
        raise ConfigError(f"read_file_in({os.fspath(root)!r}): there is no such directory")

    def read_below(path: str, offset: int = 0, limit: int = PAGE_BYTES) -> str:
        return read_page(base, path, offset, limit)

    read_below.__doc__ = read_file.__doc__
    return tool(name="read_file", description=_DESCRIPTION, effect="read")(read_below)


@tool(name="read_file", description=_DESCRIPTION, effect="read")
def read_file(path: str, offset: int = 0, limit: int = PAGE_BYTES) -> str:
    """Read a text file below the working directory of the moment; `read_file_in` makes the tool for another root.

    Args:
        path: The file, relative to the root.
        offset: The byte to begin at.
        limit: How many bytes to read at most, up to 1 MiB.
    """
    return read_page(Path.cwd(), path, offset, limit)


def read_page(root: Path, path: str, offset: int, limit: int) -> str:
    """At most `limit` bytes of a file from byte `offset` on, cut between characters.

    A last line tells where to go on, if there is more. Raises `ToolError` for every reason not to.
    """
    if offset < 0 or limit < 1:
        raise ToolError(f"offset={offset}, limit={limit}: the offset begins at 0, the limit at 1")
    limit = min(limit, MAX_PAGE_BYTES)
    try:
        descriptor = open_below(root, path)
    except Outside as error:
        raise ToolError(
            f"{_shown(path)} cannot be read: {error}. read_file reads only files below its root {root} and follows no "
            "link out of it",
            hint="give a path relative to the root",
        ) from error
    except Refused as error:
        raise ToolError(f"{_shown(path)} cannot be read: {error} (root: {root})") from error
    except (OSError, ValueError) as error:
        raise ToolError(f"{_shown(path)} cannot be read: {_reason(error)} (root: {root})") from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        file.seek(offset)
        content = file.read(limit + 4)
    return _page(path, content, offset, limit, size)


def _page(path: str, content: bytes, offset: int, limit: int, size: int) -> str:
    start = _boundary(content, 0) if offset else 0
    end = min(len(content), limit)
    while start < end < len(content) and _goes_on(content, end):
        end -= 1
    if end <= start:  # the limit is smaller than the first character
        end = _boundary(content, start + 1)
    text = _decoded(path, content[start:end], offset == 0)
    if offset >= size > 0:
        return f"[the file ends at byte {size}]"
    after = offset + end
    return f"{text}\n[bytes {offset + start} to {after} of {size}; go on with offset={after}]" if after < size else text


def _goes_on(content: bytes, at: int) -> bool:
    """True if the byte belongs to a character that began before it."""
    return content[at] & 0xC0 == 0x80


def _boundary(content: bytes, at: int) -> int:
    """The first place from `at` on where a character begins, at most three bytes on."""
    for place in range(at, min(at + 4, len(content))):
        if not _goes_on(content, place):
            return place
    return min(at + 3, len(content)) if at else 0


def _decoded(path: str, content: bytes, at_start: bool) -> str:
    if at_start and content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ToolError(f"{_shown(path)} is UTF-16 text; read_file reads UTF-8 only")
    if b"\0" in content:
        raise ToolError(f"{_shown(path)} is a binary file; read_file reads text only")
    try:
        return content.removeprefix(codecs.BOM_UTF8 if at_start else b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{_shown(path)} is not UTF-8 text (byte {content[error.start]:#04x}); it is binary or in another encoding"
        ) from error


def _shown(path: str) -> str:
    return repr(path if len(path) <= _SHOWN else path[:_SHOWN] + "…")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "the path cannot be expressed on this system"
