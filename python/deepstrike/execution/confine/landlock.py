"""Landlock: what the process, and all that it starts, may do with files, ports, signals and abstract sockets.

Source of the numbers: the kernel's `include/uapi/linux/landlock.h`, ABI 1 to 7.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import TYPE_CHECKING, Final

from deepstrike.execution.confine.native import open_plain, system_call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepstrike.execution.confine.policy import Policy

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ABOUT_VERSION: Final = 1
_BENEATH, _PORT = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILES_BY_ABI: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_FILE_ONLY: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
WRITE: Final = ((1 << 15) - 1) & ~(_MAKE_CHAR | _MAKE_BLOCK)
"""All but making devices, and commands to devices."""
DEVICE: Final = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV

_CONNECT_TCP: Final = 1 << 1
_TCP: Final = (1 << 0) | _CONNECT_TCP
_SCOPES: Final = 3
"""Abstract sockets and signals stay among the processes of the run."""

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SHARED_MEMORY: Final = "/dev/zero"
"""Who maps it holds memory that no count of processes finds."""
PROC_FACTS: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)
"""Facts about the machine that programs ask for, where the rest of /proc tells of other people's processes."""


def landlock_abi() -> int:
    """The version that the kernel speaks, 0 where it has none or it is switched off."""
    try:
        return system_call(_CREATE, None, 0, _ABOUT_VERSION)
    except OSError:
        return 0


def restrict(policy: Policy, abi: int, *, own_proc: bool, isolated_network: bool, memory_counted: bool) -> None:
    """Put the policy's rules in force for this process for good. Raises `OSError`; then it must not go on.

    `own_proc` says that /proc shows the run's processes only, `isolated_network` that there is no network to reach,
    `memory_counted` that a control group keeps the limit of memory, or there is none.
    """
    tcp = abi >= 4 and not isolated_network and policy.network is not True
    fields = (_FILES_BY_ABI[min(abi, 5)], _TCP if tcp else 0, _SCOPES)
    ruleset = _create(fields[: 1 if abi < 4 else 2 if abi < 6 else 3])
    handled = fields[0]
    for path in policy.system:
        _allow_if_there(ruleset, path, READ, handled)
    for path in ("/proc",) if own_proc else PROC_FACTS:
        _allow_if_there(ruleset, path, _READ_FILE | _READ_DIR, handled)
    for path in DEVICES:
        if memory_counted or path != _SHARED_MEMORY:
            _allow_if_there(ruleset, path, DEVICE, handled)
    _allow(ruleset, policy.read, READ, handled)
    _allow(ruleset, policy.write, WRITE, handled)
    if tcp and not isinstance(policy.network, bool):
        for port in policy.network:
            system_call(_ADD, ruleset, _PORT, struct.pack("=QQ", _CONNECT_TCP, port), 0)
    system_call(_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _create(fields: tuple[int, ...]) -> int:
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    return system_call(_CREATE, attributes, len(attributes), 0)


def _allow(ruleset: int, paths: Iterable[str], rights: int, handled: int) -> None:
    for path in paths:
        descriptor = open_plain(path)
        _add(ruleset, descriptor, rights, handled)
        os.close(descriptor)


def _allow_if_there(ruleset: int, path: str, rights: int, handled: int) -> None:
    """For paths of the system, which may be links and which not every system has."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    _add(ruleset, descriptor, rights, handled)
    os.close(descriptor)


def _add(ruleset: int, descriptor: int, rights: int, handled: int) -> None:
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        rights &= _FILE_ONLY
    system_call(_ADD, ruleset, _BENEATH, struct.pack("=Qi", rights & handled, descriptor), 0)
