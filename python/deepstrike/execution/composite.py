"""Several planes as one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.execution.base import require_plane
from deepstrike.execution.lifetime import Opening, close, notices, open_plane
from deepstrike.execution.unknown import unknown_tool
from deepstrike.tools.failures import failure
from deepstrike.wire.message import Err, Notice

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType

    from deepstrike.execution.base import ExecutionPlane, Invocation
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated


_log = logging.getLogger("deepstrike")


class CompositePlane:
    """The tools of all its planes, each run where it lives.

    A name belongs to one plane: with two of them that offer it no run begins. Planes may be opened later and change
    their tools, so names are looked up anew when they are needed. A plane that cannot be opened, such as that of an
    MCP server which is down, is passed over: the run goes on without its tools, begins with a `NoticeEvent` that says
    so (code `plane_unavailable`), and tries it again the next time.
    """

    def __init__(self, *planes: ExecutionPlane, required: bool | Collection[ExecutionPlane] = False) -> None:
        """`required` are the planes without which no run begins: all of them (True), none, or those of a list.

        Raises `ConfigError` for what is no plane, if two planes offer a tool of the same name, one plane is there
        twice, or a required one is not there. Planes whose tools are known once they are open are compared when a run
        begins.
        """
        for plane in planes:
            require_plane("each argument of CompositePlane(one, other)", plane)
        if len({id(plane) for plane in planes}) < len(planes):
            raise ConfigError("a plane stands twice in this CompositePlane; give each once")
        self._planes = planes
        self._required = _required(required, planes)
        self._absent: dict[int, str] = {}
        self._seen: tuple[tuple[ToolSpec, ...], ...] = ()
        self._merged: tuple[ToolSpec, ...] = ()
        if not any(isinstance(plane, Opening) for plane in planes):
            self.specs()

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, sorted by name; the same object until a plane changes its own.

        Raises `ConfigError` for a name that two planes offer, and what a plane raises that is not open yet.
        """
        seen = tuple(self._specs(at, plane) for at, plane in enumerate(self._planes))
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
        """Open every plane whose tools are only known then, all at once. Raises what a required one raises."""
        found = await asyncio.gather(*map(open_plane, self._planes), return_exceptions=True)
        absent: dict[int, str] = {}
        for at, error in enumerate(found):
            if error is None:
                continue
            if at in self._required or not isinstance(error, Exception):
                raise error
            absent[at] = error.message if isinstance(error, DeepStrikeError) else f"{type(error).__name__}: {error}"
            _log.warning("the tools of %r are missing: %s", self._planes[at], absent[at])
        self._absent = absent

    def notices(self) -> tuple[Notice, ...]:
        """The planes that could not be opened, and what the others have to tell."""
        missing = [
            Notice("plane_unavailable", f"the tools of {self._planes[at]!r} are missing: {why}")
            for at, why in self._absent.items()
        ]
        return (*missing, *(notice for plane in self._planes for notice in notices(plane)))

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
                    "tool(name=…)(function), prefix=… for an MCP server; or leave it out by FilteredExecutionPlane"
                )

    def _home(self, name: str) -> ExecutionPlane | None:
        """The first plane that offers the tool."""
        return next((plane for plane in self._planes if name in self._names(plane)), None)

    def _names(self, plane: ExecutionPlane) -> dict[str, None]:
        """In the plane's order."""
        try:
            return {spec.name: None for spec in plane.specs()}
        except ConfigError:  # it is not open, or a tool of it has no schema: it offers nothing
            return {}

    def _specs(self, at: int, plane: ExecutionPlane) -> tuple[ToolSpec, ...]:
        """Those of a plane; of one that could not be opened what it knows from before, if it knows anything."""
        if at not in self._absent:
            return plane.specs()
        try:
            return plane.specs()
        except ConfigError:
            return ()

    def _unknown(self, name: str) -> str:
        text = unknown_tool(name, (each for plane in self._planes for each in self._names(plane)))
        missing = (f"; the tools of {self._planes[at]!r} are missing: {why}" for at, why in self._absent.items())
        return text + "".join(missing)


def _required(required: bool | Collection[ExecutionPlane], planes: tuple[ExecutionPlane, ...]) -> set[int]:
    if isinstance(required, bool):
        return set(range(len(planes))) if required else set()
    if not isinstance(required, Iterable):
        raise ConfigError(f"required={required!r}: give True, False or a list of planes")
    wanted = {id(plane) for plane in required}
    if not wanted <= {id(plane) for plane in planes}:
        raise ConfigError("required= names a plane that is not in this CompositePlane; give it there, too")
    return {at for at, plane in enumerate(planes) if id(plane) in wanted}
