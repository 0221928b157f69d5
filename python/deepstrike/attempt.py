"""One of several tries at the same goal, and what they may spend together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.wire.message import Part
    from deepstrike.wire.policy import Config

_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """What may still be spent: tokens, dollars, milliseconds of active time, turns; None means no limit."""

    tokens: int | None = None
    cost_usd: float | None = None
    time_ms: int | None = None
    turns: int | None = None

    def less(self, tokens: int, cost_usd: float, time_ms: int, turns: int) -> Budget:
        """What is left once these are spent."""
        return Budget(
            None if self.tokens is None else self.tokens - tokens,
            None if self.cost_usd is None else self.cost_usd - cost_usd,
            None if self.time_ms is None else self.time_ms - time_ms,
            None if self.turns is None else self.turns - turns,
        )

    @property
    def ends(self) -> Literal["token_budget", "timeout", "max_turns"] | None:
        """The status of tries that end because nothing is left for another one."""
        return self.used_up or ("max_turns" if self.turns is not None and self.turns < 1 else None)

    @property
    def used_up(self) -> Literal["token_budget", "timeout"] | None:
        """The status of whatever ends because nothing is left, turns apart: a judge takes none of them."""
        if self.tokens is not None and self.tokens < 1:
            return "token_budget"
        if self.cost_usd is not None and self.cost_usd * _MICRO < 1:
            return "token_budget"
        return "timeout" if self.time_ms is not None and self.time_ms < 1 else None

    def over(self, config: Config) -> Config:
        """`config` with its limits lowered to this. For a budget that is not used up."""
        limits = msgspec.structs.replace(
            config.limits,
            max_turns=config.limits.max_turns if self.turns is None else min(config.limits.max_turns, self.turns),
            max_total_tokens=_lower(config.limits.max_total_tokens, self.tokens),
            max_cost=_lower(config.limits.max_cost, None if self.cost_usd is None else int(self.cost_usd * _MICRO)),
            timeout_ms=_lower(config.limits.timeout_ms, self.time_ms),
        )
        return msgspec.structs.replace(config, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A try at `goal` in the session `session_id`, which is its own.

    `feedback` is what was said of an earlier try; the model reads it behind the goal, as a turn. `left` is what this
    one may spend, below the limits of whoever runs it. `answers` are for a session that waits for them. The rest is as
    for `RuntimeRunner.run_streaming`.
    """

    goal: str | Sequence[Part]
    session_id: str
    criteria: Sequence[str] = ()
    extensions: Mapping[str, object] = field(default_factory=dict)
    feedback: Sequence[str] = ()
    left: Budget = Budget()
    answers: Mapping[str, object] | None = None
    deps: object = None


class Stoppable(Protocol):
    """Something under way that an interrupt of its session reaches."""

    @property
    def session_id(self) -> str:
        """The session by which it is known."""

    def interrupt(self, reason: str) -> None:
        """Stop it soon, from any thread."""


def _lower(limit: int | None, left: int | None) -> int | None:
    given = [each for each in (limit, left) if each is not None]
    return min(given, default=None)
