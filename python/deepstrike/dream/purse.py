"""What one dream may spend on its model calls: the tokens and the cost that the options let one goal spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from deepstrike.errors import ProviderError
from deepstrike.kernel import count
from deepstrike.wire.message import Text, UserBlock

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelRequest
    from deepstrike.wire.message import Usage
    from deepstrike.wire.policy import Limits, Price

LEAST: Final = 200
"""Tokens of an answer without room for which there is no call."""
_FRAME: Final = 50
_MILLION: Final = 1_000_000


class Spent(ProviderError):
    """The budget has no room for a further call. Nothing was asked."""

    default_code = "token_budget"


class Purse:
    """What is left of the limits, which hold for all calls of a dream together; None is no limit."""

    def __init__(self, limits: Limits, price: Price | None, model: str) -> None:
        self._limits = limits
        self._price = price
        self._model = model
        self._tokens = 0
        self._cost = 0

    def admit(self, asked: ModelRequest) -> ModelRequest:
        """The request with its answer bounded by what is left. Raises `Spent` where that is too little for one."""
        most = min(self._by_tokens(asked), self._by_cost(asked))
        wanted = asked.reserve if asked.max_output is None else asked.max_output
        if most < min(LEAST, wanted):
            raise Spent(
                "max_total_tokens or max_cost_usd leave no room for this session: dream again, or raise the limit "
                "where it is the first",
                retryable=self._tokens > 0,
            )
        return asked if most >= wanted else msgspec.structs.replace(asked, max_output=int(most))

    def pay(self, asked: ModelRequest, usage: Usage | None, said: str) -> None:
        """A call is over: by what the service reports of it, else by what was asked and said."""
        if usage is None:
            read, written = self._weight(asked), count(said, self._model)
            self._tokens += read + written
            self._cost += self._worth(read, written)
            return
        self._tokens += usage.input + usage.output
        if self._price is not None:
            plain = max(usage.input - usage.cached - usage.cache_write, 0)
            cached = usage.cached * self._price.cached + usage.cache_write * self._price.cache_write
            self._cost += self._worth(plain, usage.output) + -(-cached // _MILLION)

    def _by_tokens(self, asked: ModelRequest) -> float:
        if self._limits.max_total_tokens is None:
            return float("inf")
        return self._limits.max_total_tokens - self._tokens - self._weight(asked)

    def _by_cost(self, asked: ModelRequest) -> float:
        if self._limits.max_cost is None or self._price is None:
            return float("inf")
        # What is read may be the dearer kind, that is written to a cache.
        read = -(-self._weight(asked) * max(self._price.input, self._price.cache_write) // _MILLION)
        left = self._limits.max_cost - self._cost - read
        return left * _MILLION // self._price.output if self._price.output else (float("inf") if left >= 0 else 0)

    def _worth(self, read: int, written: int) -> int:
        """Micro-dollars, rounded up."""
        if self._price is None:
            return 0
        return -(-(read * self._price.input + written * self._price.output) // _MILLION)

    def _weight(self, asked: ModelRequest) -> int:
        turns = (turn for turn in asked.turns if isinstance(turn, UserBlock))
        texts = (part.text for turn in turns for part in turn.parts if isinstance(part, Text))
        return _FRAME + sum(count(text, self._model) for text in (asked.system_stable, *texts))
