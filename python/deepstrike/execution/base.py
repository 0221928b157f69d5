"""Where tools run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from deepstrike.errors import ConfigError
from deepstrike.tools.suspension import Misplaced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deepstrike.tools.context import ToolContext
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated


def unseen(_tried: int, _delay_ms: int, _reason: str) -> None:
    """The `again` of an invocation that nobody watches."""


async def misplaced(payload: object) -> object:
    """The `suspend` of an invocation that nobody can answer: raises `Misplaced`."""
    raise Misplaced


class Invocation(msgspec.Struct, frozen=True, eq=False):
    """One tool run. `args_text` is validated JSON; `show(delta, chunk)` streams what a generator tool yields.

    `show` waits while the caller does not keep up. `suspend(payload)` puts a tool's question and gives the answer; it
    raises `Parked`, which a plane lets through, where the tool must be closed until the answer comes. `again(tried,
    delay_ms, reason)` tells that the plane tries the call again after a failure.
    """

    name: str
    args_text: str
    context: ToolContext
    show: Callable[[str, object | None], Awaitable[None]]
    suspend: Callable[[object], Awaitable[object]] = misplaced
    again: Callable[[int, int, str], None] = unseen


@runtime_checkable
class ExecutionPlane(Protocol):
    """A set of tools and a place to run them. Governance, limits and the log stand in front of every plane."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""

    def validate(self, name: str, args_text: str) -> Validated:
        """Check a call's arguments against the tool's schema, coercing what may be coerced. Never raises.

        `Ok(None)` when the model's text is already the validated text; `Err` with kind `unknown_tool` (names what is
        there) or `invalid_arguments` (names the parameter).
        """

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the tool. Every failure is a result with an `error_kind`, never an exception.

        Cancelling stops an async tool and fences a sync one off; `CancelledError` then propagates.
        """


def require_plane(word: str, value: object) -> None:
    """Raises `ConfigError`, which calls the value by `word`, unless it has the methods of a plane."""
    if isinstance(value, type):
        raise ConfigError(f"{word} must be an execution plane, not a class: write {value.__name__}(…)")
    for method in ("specs", "validate", "execute"):
        if not callable(getattr(value, method, None)):
            raise ConfigError(
                f"{word} must be an execution plane, such as LocalExecutionPlane(); "
                f"{type(value).__name__} has no method {method}(…)"
            )
