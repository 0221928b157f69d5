"""The tools of this process."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.execution.unknown import unknown_tool
from deepstrike.kernel import META_TOOLS
from deepstrike.tools.decorator import tool_in
from deepstrike.tools.failures import failure
from deepstrike.tools.repeating import run_repeatedly
from deepstrike.wire.message import Err

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.execution.base import Invocation
    from deepstrike.tools.definition import Tool
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated


class LocalExecutionPlane:
    """Tools that run in this process: async ones on the loop, sync ones in threads of our own.

    Registering and unregistering is safe at any time and from any thread. A run offers its model the tools that were
    there when it began; a call of one that has been unregistered since gets an `unknown_tool` result.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tools: dict[str, Tool[..., object]] = {}
        self._specs: tuple[ToolSpec, ...] | None = None

    def register(self, *tools: Callable[..., object]) -> LocalExecutionPlane:
        """Add tools; plain functions become tools as by `tool(function)` in the same place. Returns the plane.

        Runs that begin from now on offer them. Raises `ConfigError` for a second tool of the same name, and for the
        name of a meta-tool (`delegate`, `knowledge`, `memory`, `recall`, `skill`, `update_plan`); then none of them is
        added.
        """
        frame = sys._getframe(1)
        with self._lock:
            added = dict(self._tools)
            for each in tools:
                made: Tool[..., object] = tool_in(frame, each)
                if made.name in META_TOOLS:
                    raise ConfigError(
                        f"{made.name!r} is a tool of the runtime's own; give yours another name: tool(name=…)(function)"
                    )
                if made.name in added:
                    raise ConfigError(
                        f"there is already a tool named {made.name!r}; unregister it first, or give another name: "
                        "tool(name=…)(function)"
                    )
                added[made.name] = made
            self._tools, self._specs = added, None
        return self

    def unregister(self, name: str) -> LocalExecutionPlane:
        """Take a tool out; calls that already run go on. Returns the plane. Raises `ConfigError` if there is none."""
        if not isinstance(name, str):
            raise ConfigError(f"unregister takes the name of a tool, not {name!r}")
        with self._lock:
            if name not in self._tools:
                raise ConfigError(unknown_tool(name, self._tools))
            self._tools = {other: made for other, made in self._tools.items() if other != name}
            self._specs = None
        return self

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, sorted by name; the same object until something is registered.

        Raises `ConfigError` if no schema can be made of a tool's signature.
        """
        specs = self._specs
        if specs is None:
            tools = self._tools
            specs = tuple(tools[name].spec for name in sorted(tools))
            with self._lock:
                if self._tools is tools:
                    self._specs = specs
        return specs

    def validate(self, name: str, args_text: str) -> Validated:
        """Check a call's arguments; never raises (base.py)."""
        made = self._tools.get(name)
        if made is None:
            return Err("unknown_tool", unknown_tool(name, self._tools))
        try:
            return made.check(args_text)
        except ConfigError as error:  # a tool registered in mid-run whose schema cannot be made
            return Err("invalid_arguments", error.message)

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool; every failure is a result (base.py)."""
        made = self._tools.get(invocation.name)
        if made is None:
            return failure("unknown_tool", unknown_tool(invocation.name, self._tools))
        return await run_repeatedly(made, invocation)
