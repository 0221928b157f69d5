"""Opening a file below a root, whatever the path says and whoever moves things meanwhile.

On POSIX the path is walked one name at a time from an open root directory with `O_NOFOLLOW`; links are read and walked
in the same way, so nothing outside the root can be opened even if a directory is exchanged for a link in between. (A
hard link made by someone with access to both places cannot be told from the file.) Elsewhere the resolved path is
checked before and after opening, which leaves that small window.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MAX_LINKS: Final = 40
MAX_PATH: Final = 4096

if sys.platform != "win32":
    _DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    _FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Refused(Exception):
    """The path is not one to open; the message is the reason, for the model."""


class Outside(Refused):
    """The path leads out of the root."""


def open_below(root: Path, path: str) -> int:
    """Open the regular file `path` below `root` for reading; returns the descriptor.

    Never blocks: directories, pipes, sockets and devices are refused. Raises `Refused`, or `OSError` as the system
    gives it (not found, no permission).
    """
    _check_words(path)
    if sys.platform == "win32":
        return _open_checked(root, path)
    return _open_walking(root, path)


def _check_words(path: str) -> None:
    if not path:
        raise Refused("the path is empty")
    if "\0" in path:
        raise Refused("the path holds a NUL character")
    if len(path) > MAX_PATH:
        raise Refused(f"the path has {len(path)} characters, more than {MAX_PATH}")
    if path == "~" or path.startswith(("~/", "~\\")):
        raise Outside("'~' is not expanded")


if sys.platform != "win32":

    def _open_walking(root: Path, path: str) -> int:
        walk = _Walk(os.path.realpath(root))
        try:
            return walk.open(path)
        finally:
            walk.close()

    class _Walk:
        """A stack of open directories: `..` goes back on the stack, never through the file system."""

        def __init__(self, root: str) -> None:
            self._root = root.encode("utf-8", "surrogateescape")
            self._opened = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
            self._links = 0

        def open(self, path: str) -> int:
            names = self._names(path.encode("utf-8", "surrogateescape"))
            if not names:
                raise Refused("it is a directory")
            while names:
                name = names.pop(0)
                if name == b"..":
                    self._up()
                elif (target := self._link(name)) is not None:
                    names[:0] = self._names(target)
                elif names:
                    self._opened.append(os.open(name, _DIRECTORY, dir_fd=self._opened[-1]))
                else:
                    return self._file(name)
            raise Refused("it is a directory")

        def close(self) -> None:
            for descriptor in self._opened:
                os.close(descriptor)

        def _names(self, path: bytes) -> list[bytes]:
            """The names to walk. An absolute path starts at the root again, and must be spelt below it."""
            if path.startswith(b"/"):
                below = os.path.relpath(path, self._root)
                inside = path == self._root or path.startswith(self._root.rstrip(b"/") + b"/")
                if not inside or below.split(b"/")[0] == b"..":
                    raise Outside("it is outside")
                for descriptor in self._opened[1:]:
                    os.close(descriptor)
                del self._opened[1:]
                path = path[len(self._root.rstrip(b"/")) :]
            return [name for name in path.split(b"/") if name not in (b"", b".")]

        def _up(self) -> None:
            if len(self._opened) == 1:
                raise Outside("it is outside")
            os.close(self._opened.pop())

        def _link(self, name: bytes) -> bytes | None:
            try:
                target = os.readlink(name, dir_fd=self._opened[-1])
            except OSError as error:
                if error.errno == errno.EINVAL:  # not a link
                    return None
                raise
            self._links += 1
            if self._links > MAX_LINKS:
                raise Refused(f"more than {MAX_LINKS} links follow each other")
            return target

        def _file(self, name: bytes) -> int:
            # Looked at before opening, because opening alone may already do something to a device.
            _check_regular(os.stat(name, dir_fd=self._opened[-1], follow_symlinks=False))
            try:
                descriptor = os.open(name, _FILE, dir_fd=self._opened[-1])
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise Refused("it was exchanged for a link meanwhile") from error
                raise
            return _checked(descriptor)


def _open_checked(root: Path, path: str) -> int:
    base = os.path.realpath(root)
    real = os.path.realpath(os.path.join(base, path))
    if os.path.commonpath([base, real]) != base:
        raise Outside("it is outside")
    _check_regular(os.stat(real))
    descriptor = _checked(os.open(real, os.O_RDONLY))
    if os.path.realpath(real) != real or not os.path.samestat(os.fstat(descriptor), os.stat(real)):
        os.close(descriptor)
        raise Refused("it was exchanged meanwhile")
    return descriptor


def _checked(descriptor: int) -> int:
    try:
        _check_regular(os.fstat(descriptor))
    except Refused:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise Refused("it is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise Refused("it is a device, a pipe or a socket, not a file")
