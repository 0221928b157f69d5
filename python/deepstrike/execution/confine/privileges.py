"""Giving up what the process could do beyond its user's rights, and bounding what it may use."""

from __future__ import annotations

import errno
import os
import resource
import struct
from typing import TYPE_CHECKING, Final

from deepstrike.execution.confine import native

if TYPE_CHECKING:
    from deepstrike.execution.confine.policy import Limits

_CAPABILITY_VERSION: Final = 0x20080522
_LOCKED_NO_ROOT: Final = 0b1111
"""Being user 0 gives no capability, and `setuid` gives none back; both for good."""


def forbid_new_privileges() -> None:
    """From now on no program that is started gets more rights than this process has. Raises `OSError`."""
    native.process_control(native.PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Have none and get none. Raises `OSError` if this process has some that it cannot give up."""
    native.process_control(native.PR_CAP_AMBIENT, native.PR_CAP_AMBIENT_CLEAR_ALL)
    if os.geteuid() == 0:
        _empty_bounding_set()
    native.set_capabilities(struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24))


def _empty_bounding_set() -> None:
    try:
        native.process_control(native.PR_SET_SECUREBITS, _LOCKED_NO_ROOT)
        for capability in range(64):
            native.process_control(native.PR_CAPBSET_DROP, capability)
    except OSError as error:
        # EINVAL: beyond the last one. EPERM: a root that may not set capabilities, whom `no_new_privs` keeps from more.
        if error.errno not in (errno.EINVAL, errno.EPERM):
            raise


def bound(limits: Limits, processes_before: int) -> None:
    """Put the limits in force. Raises `OSError` or `ValueError`.

    Processes and threads are counted by user: `processes_before` of this user are there already, and not the run's.
    """
    # With 0 no core file is written, but a host's program for such files still gets it; with 1 it does not.
    _set(resource.RLIMIT_CORE, 1)
    _set(resource.RLIMIT_CPU, limits.cpu_seconds)
    _set(resource.RLIMIT_AS, limits.memory_bytes)
    _set(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.processes is not None:
        _set(resource.RLIMIT_NPROC, limits.processes + processes_before)


def _set(kind: int, value: int | None) -> None:
    if value is None:
        return
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        value = min(value, most)
    resource.setrlimit(kind, (value, value))
