"""Reading, writing and flushing files, the same on every system."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if sys.platform == "darwin":
    import fcntl

if sys.platform == "win32":
    BINARY: Final = os.O_BINARY
    _AT_ONCE_OR_NOT: Final = 0
else:
    BINARY: Final = 0
    _AT_ONCE_OR_NOT: Final = os.O_NONBLOCK

if TYPE_CHECKING:
    from pathlib import Path

_AT_ONCE: Final = 1 << 26


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, however many writes that takes. Raises `OSError` having written any part of it."""
    written = os.write(descriptor, data)
    while written < len(data):
        more = os.write(descriptor, memoryview(data)[written : written + _AT_ONCE])
        if more == 0:
            raise OSError(f"the system took {written} of {len(data)} bytes")
        written += more


if sys.platform == "win32":

    def write_at(descriptor: int, at: int, data: bytes) -> None:
        """Write a few bytes at offset `at`. Moves the descriptor's place. Raises `OSError`, also for a part of them."""
        os.lseek(descriptor, at, os.SEEK_SET)
        _require_all(os.write(descriptor, data), data)

else:

    def write_at(descriptor: int, at: int, data: bytes) -> None:
        """Write a few bytes at offset `at`. Raises `OSError`, also where only a part of them was taken."""
        _require_all(os.pwrite(descriptor, data, at), data)


def _require_all(written: int, data: bytes) -> None:
    if written < len(data):
        raise OSError(errno.ENOSPC, f"the system took {written} of {len(data)} bytes")


def open_to_read(path: Path) -> int:
    """The descriptor of a regular file. Raises `OSError`, at once too for a folder, a pipe or a device of this name."""
    # Opening a pipe waits for a writer otherwise, for ever.
    descriptor = os.open(path, os.O_RDONLY | BINARY | _AT_ONCE_OR_NOT)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_at(descriptor: int, at: int, size: int) -> bytes:
    """Up to `size` bytes from offset `at`, fewer only where the file ends. Moves the descriptor's place."""
    os.lseek(descriptor, at, os.SEEK_SET)
    pieces: list[bytes] = []
    while size > 0 and (piece := os.read(descriptor, min(size, _AT_ONCE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def flush(descriptor: int) -> None:
    """Have the disk hold what was written. Raises `OSError`; afterwards it is unknown what the disk holds."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # plain fsync leaves it in the drive's own cache
    elif sys.platform == "win32":
        os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


def flush_folder(path: Path) -> None:
    """Have the disk hold the names in a folder."""
    if sys.platform != "win32":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(path: Path, *, flushed: bool = False) -> None:
    """Make a folder that only its user can enter, and those above it; one that is there stays as it is.

    `flushed`: the disk holds the names of those that are made.
    """
    if not path.is_dir():
        make_folder(path.parent, flushed=flushed)
        path.mkdir(mode=0o700, exist_ok=True)
        if flushed:
            flush_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        path.unlink()
