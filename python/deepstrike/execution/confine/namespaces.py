"""Views of the run's own: of processes, mounts, network, shared memory and host name."""

from __future__ import annotations

import fcntl
import os
import struct
from typing import TYPE_CHECKING, Final

from deepstrike.execution.confine import native
from deepstrike.execution.confine.native import open_plain, system_call

if TYPE_CHECKING:
    from deepstrike.execution.confine.policy import Policy

_NEW_MOUNTS, _NEW_NAME, _NEW_MEMORY = 0x00020000, 0x04000000, 0x08000000
_NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_EMPTY_PATH, _RECURSIVE, _CLONE, _CLOEXEC = 0x1000, 0x8000, 1, 0o2000000
_FROM_HERE_TO_HERE: Final = 0x4 | 0x40
_READ_ONLY, _NO_SETUID = 1, 2
_PRIVATE: Final = 1 << 18
_PROC_FLAGS: Final = 2 | 4 | 8
_HERE: Final = -100

_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


def enter(policy: Policy) -> None:
    """Leave the host's namespaces; the next child is the first process of the new one.

    All that is mounted becomes read-only but the policy's `write`. Raises `OSError`; then this process is of no use.
    """
    _leave(without_network=policy.network is False)
    trees = [(open_plain(path), _copy(path)) for path in policy.write]
    attributes = struct.pack("=4Q", _READ_ONLY | _NO_SETUID, 0, _PRIVATE, 0)
    system_call(_MOUNT_SETATTR, _HERE, b"/", _RECURSIVE, attributes, len(attributes))
    for place, tree in trees:
        system_call(_MOVE_MOUNT, tree, b"", place, b"", _FROM_HERE_TO_HERE)
        os.close(place)
        os.close(tree)
    if policy.network is False:
        _raise_loopback()


def works(policy: Policy) -> bool:
    """Whether `enter` succeeds on this machine, found by a child that tries it."""
    child = os.fork()
    if child == 0:
        try:
            enter(policy)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def mount_proc() -> bool:
    """Show this namespace's processes in /proc and no others; False where the system does not let it."""
    try:
        native.mount("proc", "/proc", "proc", _PROC_FLAGS)
    except OSError:
        return False
    return True


def _leave(*, without_network: bool) -> None:
    user, group = os.geteuid(), os.getegid()
    network = _NEW_NETWORK if without_network else 0
    native.unshare(_NEW_USERS | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_MEMORY | _NEW_NAME | network)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "wb", buffering=0) as file:
            file.write(text.encode())


def _copy(path: str) -> int:
    """The tree at `path` as a mount of its own, not mounted anywhere yet and as writable as it is now."""
    place = open_plain(path)
    try:
        return system_call(_OPEN_TREE, place, b"", _EMPTY_PATH | _RECURSIVE | _CLONE | _CLOEXEC)
    finally:
        os.close(place)


def _raise_loopback() -> None:
    """Programs of one run may talk to each other; there is nobody else in this network."""
    descriptor = native.open_socket(2, 2)
    try:
        request = fcntl.ioctl(descriptor, _GET_FLAGS, struct.pack("=16sH22x", b"lo", 0))
        (flags,) = struct.unpack_from("=H", request, 16)
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("=16sH22x", b"lo", flags | _UP))
    finally:
        os.close(descriptor)
