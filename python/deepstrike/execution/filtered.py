"""Some of the tools of another plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
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


class FilteredExecutionPlane:
    """The tools of `inner` that are allowed; the others are not there: not offered, not run, not named in errors.

    It filters what the model sees. Rules that judge calls, and leave a record of it, belong to governance.
    """

    def __init__(self, inner: ExecutionPlane, allow: Allow) -> None:
        """`allow` lists names and globs (`*`, `?`, `[…]`; case-sensitive), or is a function of the name.

        A function that raises allows nothing. Raises `ConfigError` for anything else, a single string among it.
        """
        self._inner = inner
        self._allows = _judge(allow)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Those of the inner plane that are allowed, in its order."""
        return tuple(spec for spec in self._inner.specs() if self._allows(spec.name))

    def validate(self, name: str, args_text: str) -> Validated:
        """As the inner plane does; `unknown_tool` for what is not allowed. Never raises (base.py)."""
        if not self._allows(name):
            return Err("unknown_tool", self._unknown(name))
        checked = self._inner.validate(name, args_text)
        # The inner plane would name the tools that are hidden here.
        hidden = isinstance(checked, Err) and checked.kind == "unknown_tool"
        return Err("unknown_tool", self._unknown(name)) if hidden else checked

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool on the inner plane; an `unknown_tool` result for what is not allowed (base.py)."""
        if not self._allows(invocation.name):
            return failure("unknown_tool", self._unknown(invocation.name))
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

    def _unknown(self, name: str) -> str:
        try:
            return unknown_tool(name, (spec.name for spec in self.specs()))
        except ConfigError:  # a tool of the inner plane has no schema; that is told where it is offered
            return unknown_tool(name, ())


def _judge(allow: Allow) -> Callable[[str], bool]:
    if callable(allow):
        return _guarded(allow)
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise ConfigError(f"allow={allow!r}: give a list of tool names and globs, or a function of the name")
    globs = tuple(allow)
    wrong = [each for each in globs if not isinstance(each, str) or not each]
    if wrong:
        raise ConfigError(f"allow: {wrong[0]!r} is no tool name and no glob")
    return _guarded(lambda name: any(glob(pattern, name) for pattern in globs))


def _guarded(allow: Callable[[str], bool]) -> Callable[[str], bool]:
    def allows(name: str) -> bool:
        try:
            return allow(name) is True
        except Exception:
            return False

    return allows
