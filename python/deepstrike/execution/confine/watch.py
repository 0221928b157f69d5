"""Seeing what a run has started, and ending all of it."""

from __future__ import annotations

import os
import select
import signal
from typing import Final

_ROUNDS: Final = 2_000
_PAUSE_MS: Final = 2
_HELD: Final = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")
"""Between two rounds; what was killed needs a moment to be gone."""


class Family:
    """The descendants of this process.

    It is their reaper: whatever loses its parent becomes its child, so none can leave by forking twice or by a session
    of its own.
    """

    def __init__(self) -> None:
        """`/proc` is kept as it is seen now, before another one may be mounted over it."""
        self._proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._lists_children = self._read(f"self/task/{os.getpid()}/children") is not None
        self.ended: dict[int, int] = {}
        self._me = os.getpid()

    def members(self) -> list[int]:
        """Their process ids, parents before children; zombies of others among them."""
        children = self._by_lists if self._lists_children else self._by_parents()
        found, next_ones = [], list(children(self._me))
        while next_ones:
            found += next_ones
            next_ones = [child for parent in next_ones for child in children(parent)]
        return found

    def threads(self, members: list[int]) -> int:
        """How many the members have together, each at least its first one."""
        return sum(max(1, len(self._names(f"{member}/task"))) for member in members)

    def held_bytes(self, members: list[int]) -> int:
        """Memory of the members that is in no file; what they share among them counts once."""
        return sum(self._held_bytes(member) for member in members)

    def _held_bytes(self, member: int) -> int:
        lines = (self._read(f"{member}/smaps_rollup") or "").splitlines()
        kilobytes = [int(line.split()[1]) for line in lines if line.startswith(_HELD)]
        if kilobytes:
            return 1024 * sum(kilobytes)
        # Older kernels, and processes that may not be looked at: what is shared is then not counted.
        words = (self._read(f"{member}/statm") or "").split()
        return (int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE") if len(words) > 2 else 0

    def reap(self) -> None:
        """Note every child that has ended in `ended`: process id → wait status."""
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                return
            self.ended[child] = status

    def end(self) -> bool:
        """Kill them all, those that they start meanwhile too; False if some were still there after some seconds."""
        for _ in range(_ROUNDS):
            members = self.members()
            for member in members:
                _kill(member)
            self.reap()
            if not members:
                return True
            select.poll().poll(_PAUSE_MS)
        return False

    def _by_lists(self, parent: int) -> list[int]:
        found: list[int] = []
        for task in self._names(f"{parent}/task"):
            found += map(int, (self._read(f"{parent}/task/{task}/children") or "").split())
        return found

    def _by_parents(self) -> _Children:
        """For kernels that do not list children."""
        found: dict[int, list[int]] = {}
        for name in self._names("."):
            if name.isdigit() and (line := self._read(f"{name}/stat")):
                parent = int(line.rpartition(")")[2].split()[1])
                found.setdefault(parent, []).append(int(name))
        return _Children(found)

    def count_of_user(self, user: int) -> int:
        """Threads of all processes of `user`, as the system counts them against its limit."""
        total = 0
        for name in self._names("."):
            try:
                if name.isdigit() and os.stat(name, dir_fd=self._proc).st_uid == user:
                    total += len(self._names(f"{name}/task"))
            except OSError:  # noqa: PERF203  (processes end while they are counted)
                continue
        return total

    def _names(self, path: str) -> list[str]:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return []
        try:
            return os.listdir(descriptor)
        except OSError:
            return []
        finally:
            os.close(descriptor)

    def _read(self, path: str) -> str | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return None
        try:
            return os.read(descriptor, 1 << 20).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(descriptor)


class _Children:
    """Parent → children, as once seen."""

    def __init__(self, found: dict[int, list[int]]) -> None:
        self._found = found

    def __call__(self, parent: int) -> list[int]:
        return self._found.get(parent, [])


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
