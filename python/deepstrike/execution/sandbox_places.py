"""Working directories of the sandbox's own."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import secrets
import stat
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from typing import Final

if sys.platform != "win32":
    import fcntl

_log: Final = logging.getLogger("deepstrike")
_PREFIX: Final = "deepstrike-sandbox-"
_ATTEMPTS: Final = 100
_SWEPT: Final = 1_000


class Places:
    """A directory for each session, made when it is first used, below one that is removed in the end.

    So what one session wrote, no other one reads. A process that was forked makes its own, and leaves its parent's.
    What hosts left that were killed is removed by the next one: a lock says of each whether its host lives.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._root: str | None = None
        self._owner = 0
        self._finish: weakref.finalize[..., Places] | None = None

    def of(self, session_id: str) -> str:
        """The session's directory, its path without links. Raises `OSError`."""
        with self._lock:
            if self._root is None or self._owner != os.getpid():
                self._owner = os.getpid()
                self._root, lock = _make_locked()
                self._finish = weakref.finalize(self, _remove_own, self._root, lock, self._owner)
            root = self._root
        name = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:32]
        path = os.path.join(root, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def fresh(self) -> bool:
        """Whether none was made yet, so that it is the time to `sweep`."""
        return self._root is None

    def remove(self) -> None:
        """Remove them all; the next use makes new ones."""
        with self._lock:
            finish, self._finish, self._root = self._finish, None, None
        if finish is not None:
            finish()


def sweep() -> None:
    """Remove the directories of this user's whose hosts are gone, where the system's temporary ones are."""
    with suppress(OSError):
        top = tempfile.gettempdir()
        for name in [each for each in os.listdir(top) if each.startswith(_PREFIX)][:_SWEPT]:
            root = os.path.join(top, name)
            with suppress(OSError):
                lock = _open_folder(root)
                try:
                    if os.fstat(lock).st_uid == os.geteuid() and _locks(lock):
                        remove(root)
                finally:
                    os.close(lock)


def _make_locked() -> tuple[str, int]:
    """A new directory and the descriptor that holds its lock. Raises `OSError`."""
    for _ in range(_ATTEMPTS):
        root = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            lock = _open_folder(root)
            # Between its making and its lock another host may take it for one that was left behind.
            if _locks(lock) and os.path.isdir(root):
                return root, lock
            os.close(lock)
    raise OSError(f"no directory can be kept in {tempfile.gettempdir()}")


def _locks(descriptor: int) -> bool:
    """Take the lock, which lasts as long as a process holds the descriptor; False if somebody else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_own(root: str, lock: int, owner: int) -> None:
    if owner == os.getpid():
        remove(root)
        os.close(lock)


def remove(root: str) -> None:
    """Remove a tree that programs may have made hard to remove; what cannot be removed is told in the log."""
    try:
        top = _open_folder(root)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(root)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("the sandbox's directory %s could not be removed: %s", root, error)


def _empty(top: int) -> None:
    """Folders in folders are first moved up, so that no tree is too deep and no path too long. No link is followed."""
    numbers, prefix = itertools.count(), secrets.token_hex(8)
    while names := os.listdir(top):
        for name in names:
            if not _is_folder(name, top):
                os.unlink(name, dir_fd=top)
                continue
            folder = _opened(name, top)
            for inner in os.listdir(folder):
                if _is_folder(inner, folder):
                    os.close(_opened(inner, folder))
                    os.rename(inner, f"{prefix}-{next(numbers)}", src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(inner, dir_fd=folder)
            os.close(folder)
            os.rmdir(name, dir_fd=top)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _opened(name: str, parent: int) -> int:
    """A descriptor of the folder, with all rights for its owner."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
    finally:
        os.close(place)
    return _open_folder(name, parent)


def _open_folder(path: str, parent: int | None = None) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
