"""What the attempts of one harness and their judges have spent, and what is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.clock import current_clock
from deepstrike.stream import UsageEvent

if TYPE_CHECKING:
    from deepstrike.attempt import Budget


class Purse:
    """Tokens and dollars as they are reported, turns of the attempts, time from the first attempt of this call on."""

    __slots__ = ("_budget", "_since", "_turns", "unpriced", "usage")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._since = self._turns = 0
        self.usage = UsageEvent(0, 0, cost_usd=0.0)
        self.unpriced = False

    def begin(self) -> None:
        """Time counts from now on."""
        self._since = current_clock().now_ms()

    def spend(self, usage: UsageEvent, turns: int = 0) -> None:
        """Count a run; the turns are those of an attempt."""
        self._turns += turns
        self.unpriced = self.unpriced or (usage.cost_usd is None and usage.input_tokens + usage.output_tokens > 0)
        before = self.usage
        self.usage = UsageEvent(
            before.input_tokens + usage.input_tokens,
            before.output_tokens + usage.output_tokens,
            before.cached_tokens + usage.cached_tokens,
            before.cache_write_tokens + usage.cache_write_tokens,
            before.reasoning_tokens + usage.reasoning_tokens,
            (before.cost_usd or 0.0) + (usage.cost_usd or 0.0),
        )

    @property
    def tokens(self) -> int:
        """Input and output of everything so far."""
        return self.usage.input_tokens + self.usage.output_tokens

    @property
    def cost_usd(self) -> float | None:
        """Dollars so far; None where a price is not known."""
        return None if self.unpriced else self.usage.cost_usd

    def left(self) -> Budget:
        """What may still be spent."""
        passed = current_clock().now_ms() - self._since
        return self._budget.less(self.tokens, self.usage.cost_usd or 0.0, passed, self._turns)
