"""The meta-tools before a plane: their calls are checked, and those that the kernel does not answer are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.host.recall import recall
from deepstrike.kernel import META_TOOLS, validate
from deepstrike.tools.arguments import SchemaArguments
from deepstrike.tools.explicit import property_types

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deepstrike.execution.base import ExecutionPlane, Invocation
    from deepstrike.host.session import Session
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated

    Answer = Callable[[Session, str], Awaitable[ToolResult]]

_HOSTED: Mapping[str, Answer] = {"recall": recall}
"""The meta-tools that the host answers; the kernel answers the others itself."""

_ARGUMENTS = {
    name: SchemaArguments(spec.parameters, validate, property_types(spec.parameters))
    for name, spec in META_TOOLS.items()
}


class MetaPlane:
    """A plane behind the meta-tools of one session. They are there when the model was offered them (kernel: `meta`)."""

    __slots__ = ("_plane", "_session")

    def __init__(self, plane: ExecutionPlane, session: Session) -> None:
        self._plane = plane
        self._session = session

    def specs(self) -> tuple[ToolSpec, ...]:
        """The plane's own tools; the kernel adds its own."""
        return self._plane.specs()

    def validate(self, name: str, args_text: str) -> Validated:
        """Check a call's arguments; never raises (execution/base.py)."""
        if name in _ARGUMENTS and self._session.prompt.offers(name):
            return _ARGUMENTS[name].check(args_text)
        return self._plane.validate(name, args_text)

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool; every failure is a result (execution/base.py)."""
        answer = _HOSTED.get(invocation.name)
        if answer is not None:
            return await answer(self._session, invocation.args_text)
        return await self._plane.execute(invocation)
