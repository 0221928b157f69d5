"""Some of the tools of another plane."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.execution.base import require_plane
from deepstrike.execution.lifetime import close, notices, open_plane
from deepstrike.execution.unknown import unknown_tool
from deepstrike.kernel import glob
from deepstrike.tools.failures import failure
from deepstrike.wire.message import Err

if TYPE_CHECKING:
    from types import TracebackType

    from deepstrike.execution.base import ExecutionPlane, Invocation
    from deepstrike.wire.message import Notice, ToolResult, ToolSpec, Validated

    Allow = Iterable[str] | Callable[[str], bool]

_NO_ANSWER: Final = (
    "allow: the function gives something to await, and nobody awaits it; "
    "give a sync function that returns True or False"
)


class FilteredExecutionPlane:
    """The tools of `inner` that are allowed; the others are not there: not offered, not run, not named in errors.

    It filters what the model sees. Rules that judge calls, and leave a record of it, belong to governance.
    """

    def __init__(self, inner: ExecutionPlane, allow: Allow) -> None:
        """`allow` lists names and globs (`*`, `?`, `[…]`; case-sensitive), or is a sync function of the name.

        A function that raises allows nothing. Raises `ConfigError` for anything else, a single string and an async
        function among it, and for an `inner` that is no plane.
        """
        require_plane("inner", inner)
        self._inner = inner
        self._allows = _judge(allow)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Those of the inner plane that are allowed, in its order.

        Raises `ConfigError` if the function of the name gives something to await, and what the inner plane raises.
        """
        return tuple(spec for spec in self._inner.specs() if self._allows(spec.name))

    def validate(self, name: str, args_text: str) -> Validated:
        """As the inner plane does; `unknown_tool` for what is not allowed. Never raises (base.py)."""
        refused = self._refused(name)
        if refused is not None:
            return Err("unknown_tool", refused)
        checked = self._inner.validate(name, args_text)
        # The inner plane would name the tools that are hidden here.
        hidden = isinstance(checked, Err) and checked.kind == "unknown_tool"
        return Err("unknown_tool", self._unknown(name)) if hidden else checked

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool on the inner plane; an `unknown_tool` result for what is not allowed (base.py)."""
        refused = self._refused(invocation.name)
        if refused is not None:
            return failure("unknown_tool", refused)
        result = await self._inner.execute(invocation)
        if result.error_kind == "unknown_tool":
            return failure("unknown_tool", self._unknown(invocation.name))
        return result

    async def open(self) -> None:
        """Open the inner plane, if its tools are only known then."""
        await open_plane(self._inner)

    def notices(self) -> tuple[Notice, ...]:
        """What the inner plane has to tell about its tools."""
        return notices(self._inner)

    async def aclose(self) -> None:
        """Close the inner plane, if it holds anything open."""
        await close(self._inner)

    async def __aenter__(self) -> FilteredExecutionPlane:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _refused(self, name: str) -> str | None:
        """What is said of a tool that is not allowed, None of one that is."""
        try:
            return None if self._allows(name) else self._unknown(name)
        except ConfigError as error:
            return error.message

    def _unknown(self, name: str) -> str:
        try:
            return unknown_tool(name, (spec.name for spec in self.specs()))
        except ConfigError:  # a tool of the inner plane has no schema; that is told where it is offered
            return unknown_tool(name, ())


def _judge(allow: Allow) -> Callable[[str], bool]:
    if callable(allow):
        if any(map(_is_async, (allow, type(allow).__call__))):
            raise ConfigError(_NO_ANSWER)
        return _guarded(allow)
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise ConfigError(f"allow={allow!r}: give a list of tool names and globs, or a function of the name")
    globs = tuple(allow)
    wrong = [each for each in globs if not isinstance(each, str) or not each]
    if wrong:
        raise ConfigError(f"allow: {wrong[0]!r} is no tool name and no glob")
    return _guarded(lambda name: any(glob(pattern, name) for pattern in globs))


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _guarded(allow: Callable[[str], object]) -> Callable[[str], bool]:
    def allows(name: str) -> bool:
        try:
            said = allow(name)
        except Exception:
            return False
        if inspect.isawaitable(said):
            if isinstance(said, Coroutine):
                said.close()
            raise ConfigError(_NO_ANSWER)
        return said is True

    return allows
