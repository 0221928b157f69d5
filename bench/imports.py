"""What an import costs a cold process."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY = "\nimport os\nprint(int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6)"


def import_cost(statement: str) -> float:
    """CPU of a process that does only this, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def import_memory(statement: str) -> float:
    """Resident megabytes (10⁶ bytes) after it."""
    return float(subprocess.check_output([sys.executable, "-c", statement + MEMORY], text=True))


def brought_in(statement: str, modules: Sequence[str]) -> list[str]:
    """Which of the modules it imports."""
    code = f"{statement}\nimport sys\nprint(*sorted(sys.modules.keys() & {set(modules)!r}))"
    return subprocess.check_output([sys.executable, "-c", code], text=True).split()
