"""Planes that hold something open."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Closing(Protocol):
    """A plane that opens things when it is first used, and gives them back."""

    async def aclose(self) -> None:
        """End what it opened; calls under way come to an error result. Closing twice does nothing more."""


async def close(plane: object) -> None:
    """Close the plane if it holds anything open."""
    if isinstance(plane, Closing):
        await plane.aclose()
