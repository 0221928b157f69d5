"""Bounds on a run that the system itself keeps, also for root: control groups that count its processes and its memory.

The limit of a user's processes (`RLIMIT_NPROC`) does not count for root, and counting from outside is too slow for a
program that doubles itself. Memory that is mapped nowhere (a memfd) is nobody's by any other count.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

_ROUNDS: Final = 100
_PAUSE_MS: Final = 2
_SWEPT: Final = 1_000
_ROOT: Final = "/sys/fs/cgroup"
_PREFIX: Final = "deepstrike-"
_PIDS, _MEMORY = "pids", "memory"


class _Bound(NamedTuple):
    """One thing that a group counts: the files that take its limit, and the one that tells of it.

    Of `limits` the first has to be there; the others, which keep memory from being moved to disk, are not everywhere.
    """

    controller: str
    limits: tuple[tuple[str, int], ...]
    account: str | None = None


class _Group:
    """One folder of control groups, held by descriptors: later its path may be read-only for this process."""

    def __init__(self, parent: int, name: str) -> None:
        """Raises `OSError`."""
        os.mkdir(name, dir_fd=parent)
        self.name = name
        self.counts: list[str] = []
        self._parent = parent
        self._account: int | None = None
        self._door = -1
        try:
            self._door = self._opened("cgroup.procs", os.O_WRONLY)
        except OSError:
            self.remove()
            raise

    def keep(self, bound: _Bound) -> None:
        """Put a bound in force. Raises `OSError` where it is not counted here."""
        (first, *others) = bound.limits
        self._write(*first)
        for file, value in others:
            with suppress(OSError):
                self._write(file, value)
        if bound.account is not None:
            with suppress(OSError):
                self._account = self._opened(bound.account, os.O_RDONLY)
        self.counts.append(bound.controller)

    def enter(self) -> None:
        """Put this process inside. Raises `OSError`."""
        os.write(self._door, b"0\n")

    def kills(self) -> int:
        """How many processes the system has killed in it for want of memory."""
        if self._account is None:
            return 0
        words = os.pread(self._account, 4096, 0).decode().split()
        return next((int(value) for name, value in pairwise(words) if name == "oom_kill"), 0)

    def remove(self) -> None:
        """Take it away. One whose last process is not gone after a moment stays behind, empty and harmless."""
        for descriptor in (self._door, self._account):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        for _ in range(_ROUNDS):
            if _is_gone(self._parent, self.name):
                break
            select.poll().poll(_PAUSE_MS)  # what was killed needs a moment to be gone
        os.close(self._parent)

    def _write(self, file: str, value: int) -> None:
        descriptor = self._opened(file, os.O_WRONLY)
        try:
            os.write(descriptor, b"%d\n" % value)
        finally:
            os.close(descriptor)

    def _opened(self, file: str, flags: int) -> int:
        return os.open(f"{self.name}/{file}", flags | os.O_CLOEXEC, dir_fd=self._parent)


class Fence:
    """The control groups of one run; its processes cannot leave them."""

    def __init__(self, groups: list[_Group]) -> None:
        self._groups = groups
        self.name = groups[0].name
        counts = [each for group in groups for each in group.counts]
        self.counts_processes = _PIDS in counts
        self.counts_memory = _MEMORY in counts

    def enter(self) -> None:
        """Put this process inside; what it starts is inside too. Raises `OSError`."""
        for group in self._groups:
            group.enter()

    def out_of_memory(self) -> bool:
        """Whether the system has killed a process inside because all of them together used too much."""
        return any(group.kills() for group in self._groups)

    def take_down(self) -> None:
        """Remove the groups. The last process in them must have ended."""
        for group in self._groups:
            group.remove()


def raise_fence(processes: int | None, memory: int | None) -> Fence | None:
    """A fence around at most so many processes and bytes; None where this process may make no such group.

    Groups that launchers left which were killed are removed on the way.
    """
    name = f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    groups: list[_Group] = []
    wanted = {_PIDS: processes, _MEMORY: memory}
    for place, controllers in _parents().items():
        bounds = {each: limit for each, limit in wanted.items() if each in controllers and limit is not None}
        group = _group(place, name, bounds, newer=len(controllers) > 1) if bounds else None
        if group is not None:
            groups.append(group)
            wanted.update(dict.fromkeys(group.counts))
    return Fence(groups) if groups else None


def _group(place: str, name: str, limits: dict[str, int], *, newer: bool) -> _Group | None:
    try:
        parent = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    _sweep(place, parent)
    try:
        group = _Group(parent, name)
    except OSError:
        with suppress(OSError):
            os.close(parent)
        return None
    for controller, limit in limits.items():
        # Without the controller the file is not there, and nothing in the group would be counted.
        with suppress(OSError):
            group.keep(_bound(controller, limit, newer=newer))
    if group.counts:
        return group
    group.remove()
    return None


def _bound(controller: str, limit: int, *, newer: bool) -> _Bound:
    if controller == _PIDS:
        return _Bound(_PIDS, (("pids.max", limit),))
    if newer:
        return _Bound(_MEMORY, (("memory.max", limit), ("memory.swap.max", 0)), "memory.events")
    limits = (("memory.limit_in_bytes", limit), ("memory.memsw.limit_in_bytes", limit))
    return _Bound(_MEMORY, limits, "memory.oom_control")


def _parents() -> dict[str, tuple[str, ...]]:
    """Where groups may be made below this process's own, in the older and the newer form, and what they may count."""
    found: dict[str, tuple[str, ...]] = {}
    with suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as groups:
        for line in groups:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            older = [each for each in (_PIDS, _MEMORY) if each in controllers.split(",")]
            found.update({f"{_ROOT}/{each}{path.rstrip('/')}": (each,) for each in older})
            if number == "0":
                found[_ROOT + path.rstrip("/")] = (_PIDS, _MEMORY)
    return found


def _sweep(place: str, parent: int) -> None:
    """Remove empty groups of launchers that are gone: each is named by the process that made it."""
    with suppress(OSError):
        for name in os.listdir(place)[:_SWEPT]:
            maker = name.removeprefix(_PREFIX).partition("-")[0]
            if name.startswith(_PREFIX) and maker.isdigit() and not _lives(int(maker)):
                _is_gone(parent, name)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_gone(parent: int, name: str) -> bool:
    """Remove a group that is empty; False while it is not."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
