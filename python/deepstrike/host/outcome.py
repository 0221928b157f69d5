"""How a goal ended, in the words of its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from deepstrike.host.requests import open_requests
from deepstrike.stream import RunResult, UsageEvent

if TYPE_CHECKING:
    from deepstrike.stream import Status
    from deepstrike.wire.effect import Outcome

_MICRO = 1_000_000


def result_of(session_id: str, outcome: Outcome, output: object | None, path: tuple[str, ...] = ()) -> RunResult:
    """What a run came to, folded from its log; `output` is the answer in its form.

    `path` names the agents from the root down to the one that it was.
    """
    return RunResult(
        text=outcome.text,
        output=output,
        status=cast("Status", outcome.status),
        pending=open_requests(outcome.pending, path),
        iterations=outcome.turns,
        usage=usage_of(outcome),
        total_tokens=outcome.input_tokens + outcome.output_tokens,
        session_id=session_id,
        error=outcome.message or None,
        code=outcome.code or None,
        retryable=outcome.retryable,
    )


def usage_of(outcome: Outcome) -> UsageEvent:
    """The tokens and the cost of all its calls."""
    return UsageEvent(
        outcome.input_tokens,
        outcome.output_tokens,
        outcome.cached_tokens,
        outcome.cache_write_tokens,
        outcome.reasoning_tokens,
        outcome.cost / _MICRO if outcome.priced else None,
    )
