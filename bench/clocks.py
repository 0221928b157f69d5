"""CPU and memory of this process."""

from __future__ import annotations

import os
import resource
from pathlib import Path


def cpu_us() -> float:
    """User and system time of all threads, in microseconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e6


def resident() -> int:
    """Resident bytes now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def resident_peak() -> int:
    """Most resident bytes since the start or the last `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak() -> None:
    """Start a new peak at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")
