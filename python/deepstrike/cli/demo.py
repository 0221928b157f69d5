"""The tools of `deepstrike demo`."""

from __future__ import annotations

from datetime import datetime

from deepstrike.clock import current_clock
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.tools.decorator import tool


@tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@tool
def multiply(x: int, y: int) -> int:
    """Multiply two numbers."""
    return x * y


@tool
def now() -> str:
    """Tell the date and time."""
    return datetime.fromtimestamp(current_clock().now_ms() / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def demo_plane() -> LocalExecutionPlane:
    """A plane with the three of them."""
    return LocalExecutionPlane().register(add, multiply, now)
