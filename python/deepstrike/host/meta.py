"""The meta-tools before a plane: their calls are checked, and those that the kernel does not answer are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.execution.unknown import nearest_first
from deepstrike.host.delegate import DELEGATE, checked, delegate
from deepstrike.host.recall import recall
from deepstrike.kernel import META_TOOLS, validate
from deepstrike.tools.arguments import SchemaArguments
from deepstrike.tools.explicit import property_types
from deepstrike.wire.message import Err

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deepstrike.execution.base import ExecutionPlane, Invocation
    from deepstrike.host.agents import Delegates
    from deepstrike.host.library import Library
    from deepstrike.host.session import Session
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated

    Answer = Callable[[Session, Library, Invocation], Awaitable[ToolResult]]


# What brings in YAML and SQLite is imported when it is first called.
async def _knowledge(session: Session, library: Library, invocation: Invocation) -> ToolResult:
    from deepstrike.host.look_up import knowledge

    return await knowledge(session, library, invocation)


async def _memory(session: Session, library: Library, invocation: Invocation) -> ToolResult:
    from deepstrike.host.look_up import memory

    return await memory(session, library, invocation)


async def _skill(session: Session, library: Library, invocation: Invocation) -> ToolResult:
    from deepstrike.host.skill import skill

    return await skill(session, library, invocation)


_HOSTED: Mapping[str, Answer] = {"knowledge": _knowledge, "memory": _memory, "recall": recall, "skill": _skill}
"""The meta-tools that the host answers; the kernel answers the others itself."""

_ARGUMENTS = {
    name: SchemaArguments(spec.parameters, validate, property_types(spec.parameters))
    for name, spec in META_TOOLS.items()
}


class MetaPlane:
    """A plane behind the meta-tools of one session. They are there when the model was offered them (kernel: `meta`)."""

    __slots__ = ("_delegates", "_library", "_plane", "_session")

    def __init__(
        self, plane: ExecutionPlane, session: Session, library: Library, delegates: Delegates | None = None
    ) -> None:
        self._plane = plane
        self._session = session
        self._library = library
        self._delegates = delegates

    def specs(self) -> tuple[ToolSpec, ...]:
        """The plane's own tools; the kernel adds its own."""
        return self._plane.specs()

    def validate(self, name: str, args_text: str) -> Validated:
        """Check a call's arguments; never raises (execution/base.py)."""
        if name == DELEGATE and self._delegates is not None:
            return checked(_ARGUMENTS[name].check(args_text), args_text, self._delegates, self._plane)
        if name in _ARGUMENTS and name != DELEGATE and self._session.kernel.offers(name):
            return _ARGUMENTS[name].check(args_text)
        found = self._plane.validate(name, args_text)
        return self._with_own(name, found) if isinstance(found, Err) and found.kind == "unknown_tool" else found

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool; every failure is a result (execution/base.py)."""
        if invocation.name == DELEGATE and self._delegates is not None:
            return await delegate(self._delegates, invocation)
        answer = _HOSTED.get(invocation.name)
        if answer is not None:
            return await answer(self._session, self._library, invocation)
        return await self._plane.execute(invocation)

    def _with_own(self, name: str, found: Err) -> Err:
        """The error for an unknown tool with the meta-tools that there are, the nearest name first."""
        offers = self._session.kernel.offers
        own = [each for each in _ARGUMENTS if offers(each) and (each != DELEGATE or self._delegates is not None)]
        listed = ", ".join(nearest_first(name, own))
        return Err(found.kind, f"{found.message}; the runtime's own: {listed}" if own else found.message)
