"""A bound on the number of a run's processes that the system itself keeps, also for root: a `pids` control group.

The limit of a user's processes (`RLIMIT_NPROC`) does not count for root, and counting from outside is too slow for a
program that doubles itself.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import Final

_ROUNDS: Final = 100
_PAUSE_MS: Final = 2
_V1: Final = "/sys/fs/cgroup/pids"
_V2: Final = "/sys/fs/cgroup"


class Fence:
    """A control group for one run, the folder `path`; the processes of the run cannot leave it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._door = os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def enter(self) -> None:
        """Put this process inside; what it starts is inside too. Raises `OSError`."""
        os.write(self._door, b"0\n")

    def take_down(self) -> None:
        """Remove the group. The last process in it must have ended; one that has not leaves the empty bound behind."""
        os.close(self._door)
        for _ in range(_ROUNDS):
            if self._is_gone():
                return
            select.poll().poll(_PAUSE_MS)  # what was killed needs a moment to be gone

    def _is_gone(self) -> bool:
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        return True


def raise_fence(processes: int) -> Fence | None:
    """A fence around at most `processes`; None where this process may not make one."""
    for parent in _parents():
        path = f"{parent}/deepstrike-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            # Without the controller the file is not there, and nothing in the group would be counted.
            descriptor = os.open(f"{path}/pids.max", os.O_WRONLY)
            try:
                os.write(descriptor, b"%d\n" % processes)
            finally:
                os.close(descriptor)
            return Fence(path)
        except OSError:
            with suppress(OSError):
                os.rmdir(path)
    return None


def _parents() -> list[str]:
    """Where a group may be made below this process's own, in the older and the newer form of control groups."""
    found = []
    with suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as groups:
        for line in groups:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if "pids" in controllers.split(","):
                found.append(_V1 + path.rstrip("/"))
            elif number == "0":
                found.append(_V2 + path.rstrip("/"))
    return found
