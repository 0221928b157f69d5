"""What a person says of a call that governance asks about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Approve:
    """The call may run; with `arguments`, by these instead of the model's.

    They are validated as the model's own would be, and judged by every stage of governance but for the question itself.
    `Approve()` is the same as True.
    """

    arguments: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run; the model reads `reason`. `Deny()` is the same as False."""

    reason: str = ""
