"""Several planes as one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.execution.lifetime import Opening, close, open_plane
from deepstrike.execution.unknown import unknown_tool
from deepstrike.tools.failures import failure
from deepstrike.wire.message import Err

if TYPE_CHECKING:
    from types import TracebackType

    from deepstrike.execution.base import ExecutionPlane, Invocation
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated


class CompositePlane:
    """The tools of all its planes, each run where it lives.

    A name belongs to one plane: with two of them that offer it no run begins. Planes may be opened later and change
    their tools, so names are looked up anew when they are needed.
    """

    def __init__(self, *planes: ExecutionPlane) -> None:
        """Raises `ConfigError` if two planes offer a tool of the same name, or one plane is there twice.

        Planes whose tools are known once they are open are compared when a run begins.
        """
        if len({id(plane) for plane in planes}) < len(planes):
            raise ConfigError("a plane stands twice in this CompositePlane; give each once")
        self._planes = planes
        self._seen: tuple[tuple[ToolSpec, ...], ...] = ()
        self._merged: tuple[ToolSpec, ...] = ()
        if not any(isinstance(plane, Opening) for plane in planes):
            self.specs()

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, sorted by name; the same object until a plane changes its own.

        Raises `ConfigError` for a name that two planes offer, and what a plane raises that is not open yet.
        """
        seen = tuple(plane.specs() for plane in self._planes)
        if any(one is not other for one, other in zip(seen, self._seen, strict=False)) or len(seen) != len(self._seen):
            merged = tuple(sorted((spec for specs in seen for spec in specs), key=lambda spec: spec.name))
            self._check(merged)
            self._seen, self._merged = seen, merged
        return self._merged

    def validate(self, name: str, args_text: str) -> Validated:
        """As the tool's own plane does. Never raises (base.py)."""
        plane = self._home(name)
        return plane.validate(name, args_text) if plane is not None else Err("unknown_tool", self._unknown(name))

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool on its own plane; every failure is a result (base.py)."""
        plane = self._home(invocation.name)
        if plane is None:
            return failure("unknown_tool", self._unknown(invocation.name))
        return await plane.execute(invocation)

    async def open(self) -> None:
        """Open every plane whose tools are only known then. Raises what the first one that fails raises."""
        for plane in self._planes:
            await open_plane(plane)

    async def aclose(self) -> None:
        """Close every plane that holds anything open, the last one first, and all of them; raises the first error."""
        errors: list[Exception] = []
        for plane in reversed(self._planes):
            try:
                await close(plane)
            except Exception as error:  # noqa: PERF203  (the others are closed all the same)
                errors.append(error)
        if errors:
            raise errors[0]

    async def __aenter__(self) -> CompositePlane:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _check(self, merged: tuple[ToolSpec, ...]) -> None:
        for one, other in pairwise(merged):
            if one.name == other.name:
                raise ConfigError(
                    f"two planes offer a tool named {one.name!r}; give one of them another name: "
                    "tool(name=…)(function), or leave it out by FilteredExecutionPlane"
                )

    def _home(self, name: str) -> ExecutionPlane | None:
        """The first plane that offers the tool."""
        return next((plane for plane in self._planes if name in self._names(plane)), None)

    def _names(self, plane: ExecutionPlane) -> set[str]:
        try:
            return {spec.name for spec in plane.specs()}
        except ConfigError:  # it is not open, or a tool of it has no schema: it offers nothing
            return set()

    def _unknown(self, name: str) -> str:
        return unknown_tool(name, (each for plane in self._planes for each in self._names(plane)))
