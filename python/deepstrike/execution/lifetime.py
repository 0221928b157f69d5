"""Planes that hold something open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from deepstrike.wire.message import Notice


@runtime_checkable
class Opening(Protocol):
    """A plane whose tools are known once it is open."""

    async def open(self) -> None:
        """Find out what tools there are. Awaited before every run: cheap where nothing has changed."""


@runtime_checkable
class Closing(Protocol):
    """A plane that opens things, and gives them back."""

    async def aclose(self) -> None:
        """End what it opened; calls under way come to an error result. Closing twice does nothing more."""


@runtime_checkable
class Telling(Protocol):
    """A plane that may lack tools which one would expect."""

    def notices(self) -> tuple[Notice, ...]:
        """What is missing or otherwise than expected, as it stands now; shown at the beginning of every run."""


def notices(plane: object) -> tuple[Notice, ...]:
    """What the plane has to tell about its tools."""
    return plane.notices() if isinstance(plane, Telling) else ()


async def open_plane(plane: object) -> None:
    """Open the plane if its tools are only known then. Raises what the plane raises."""
    if isinstance(plane, Opening):
        await plane.open()


async def close(plane: object) -> None:
    """Close the plane if it holds anything open."""
    if isinstance(plane, Closing):
        await plane.aclose()
