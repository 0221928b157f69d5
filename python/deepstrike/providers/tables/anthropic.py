"""Claude models: window, output limit, price, what they refuse, and how each generation thinks. As of 2026-11-30.

Windows, limits, ids, thinking: the vendor's model pages, its troubleshooting table of thinking and the migration guides
(platform.claude.com). Prices: standard tier, dollars for a million tokens, from the vendor's model pages and from price
tables taken from its price page and dated 2026-10-24 (5.5, 5, 4.x) and 2026-11-10 (Fable 5.2). The price of a cache
write is that of five minutes; one of an hour (`cache_ttl`) costs 1.6 times as much, which a row cannot say. Haiku 5.5
charges prompts above 100,000 tokens at five times its price, which a row cannot say either: such prompts are estimated
too low. Sonnet 4.5 is at its end of life on 2026-11-30, Opus 4.5 on 2027-01-22. From 4.7 on a text counts as about 30 %
more tokens than before.
"""

from __future__ import annotations

from deepstrike.providers.base import ModelInfo
from deepstrike.wire.policy import Price

_MILLION = 1_000_000
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
# From 4.7 on: thinking only as the model sees fit, its text only on demand, no sampling.
_SINCE_47 = frozenset({"adaptive", "quiet"})
_SINCE_5 = _SINCE_47 | {"thinks"}
_BOUND = _SINCE_5 | {"prefix_bound"}
_ALWAYS = _SINCE_5 | {"always_thinks"}
_ALWAYS_BOUND = _ALWAYS | {"prefix_bound", "auto_tools_only"}


def _usd(input: float, output: float, cached: float, cache_write: float) -> Price:  # noqa: A002
    def micro(dollars: float) -> int:
        return round(dollars * _MILLION)

    return Price(micro(input), micro(output), micro(cached), micro(cache_write))


_FABLE_51 = _usd(10, 50, 0.25, 12.5)
_FABLE_5 = _usd(10, 50, 1, 12.5)
_OPUS = _usd(5, 25, 0.5, 6.25)
_SONNET_4 = _usd(3, 15, 0.3, 3.75)


def _new(model: str, traits: frozenset[str], price: Price | None) -> ModelInfo:
    refuses = _SAMPLING | {"thinking_budget"}
    return ModelInfo(model, _MILLION, 128_000, price, reasoning=True, refuses=refuses, traits=traits)


def _old(
    model: str,
    window: int,
    max_output: int,
    price: Price,
    traits: frozenset[str],
    refuses: frozenset[str] = frozenset(),
) -> ModelInfo:
    return ModelInfo(model, window, max_output, price, reasoning=True, refuses=refuses, traits=traits)


_BUDGET = frozenset({"budget"})
_EITHER = frozenset({"budget", "adaptive"})
_EFFORT = frozenset({"reasoning_effort"})

_ROWS = (
    _new("claude-fable-5-2", _ALWAYS_BOUND, _usd(8, 40, 0.2, 10)),
    _new("claude-fable-5-1", _ALWAYS_BOUND, _FABLE_51),
    _new("claude-fable-5", _ALWAYS, _FABLE_5),
    _new("claude-mythos-5-2", _ALWAYS_BOUND, None),
    _new("claude-mythos-5-1", _ALWAYS_BOUND, _FABLE_51),
    _new("claude-mythos-5", _ALWAYS, _FABLE_5),
    _new("claude-opus-5-5", _ALWAYS_BOUND, _usd(4, 20, 0.2, 5)),
    _new("claude-sonnet-5-5", _BOUND | {"between_tools", "auto_tools_only"}, _usd(2, 10, 0.1, 2.5)),
    _new("claude-haiku-5-5", _BOUND, _usd(0.1, 0.5, 0.01, 0.125)),
    _new("claude-opus-5", _SINCE_5, _OPUS),
    _new("claude-sonnet-5", _SINCE_5, _usd(2, 10, 0.2, 2.5)),
    _new("claude-opus-4-8", _SINCE_47, _OPUS),
    _new("claude-opus-4-7", _SINCE_47, _OPUS),
    _old("claude-opus-4-6", _MILLION, 128_000, _OPUS, _EITHER),
    _old("claude-sonnet-4-6", _MILLION, 64_000, _SONNET_4, _EITHER),
    _old("claude-opus-4-5", 200_000, 64_000, _OPUS, _BUDGET),
    _old("claude-sonnet-4-5", 200_000, 64_000, _SONNET_4, _BUDGET, _EFFORT),
    _old("claude-haiku-4-5", 200_000, 64_000, _usd(1, 5, 0.1, 1.25), _BUDGET, _EFFORT),
)
ROWS: dict[str, ModelInfo] = {info.id: info for info in _ROWS}
