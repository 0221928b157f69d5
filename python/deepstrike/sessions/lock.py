"""The lock of the operating system that a session's owner holds: gone with the process, whatever way that ends."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from deepstrike.errors import SessionError
from deepstrike.sessions.disk import BINARY
from deepstrike.sessions.refusals import busy, failed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HELD = {errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK}
_UNABLE = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


class SessionLock:
    """Held from `take` to `release`. Another `take` of the same file is refused, in this process too.

    The file is there only while the lock is held, or after a crash; its being there means nothing.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, session_id: str) -> SessionLock:
        """Lock `path`, making it. Raises `SessionBusy` at once, `SessionError` where it cannot be locked."""
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise failed("opening the lock", path, error) from error
            try:
                _lock(descriptor)
                if _is_at(descriptor, path):
                    return cls(path, descriptor)
            except OSError as error:
                os.close(descriptor)
                raise _refused(path, session_id, error) from error
            # Whoever held it has removed the file meanwhile: what was locked is nobody's.
            os.close(descriptor)

    def release(self) -> None:
        """Give the lock back."""
        # Removed while it is held: afterwards the file may be another owner's, as it is where somebody has removed
        # ours meanwhile. Windows removes no open file.
        with suppress(OSError):
            if _is_at(self._descriptor, self._path):
                self._path.unlink()
        self.drop()

    def drop(self) -> None:
        """Close a forked child's copy. The parent's lock stays: only closing its last copy frees it."""
        os.close(self._descriptor)


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """A file, made if it is not there, open for reading and writing while it is locked. Waits for its turn."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | BINARY, 0o600)
    try:
        _lock(descriptor, wait=True)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool = False) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _refused(path: Path, session_id: str, error: OSError) -> SessionError:
    if error.errno in _HELD:
        return busy(session_id)
    if error.errno in _UNABLE:
        return SessionError(
            f"the file system of {path.parent} cannot lock files ({error.strerror}), so two runs could write to "
            f"session {session_id!r} at once; keep the session log on a local disk",
            code="no_lock",
        )
    return failed("locking", path, error)
