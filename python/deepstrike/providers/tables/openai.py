"""OpenAI's models.

Windows, output limits and what each model refuses: the vendor's model pages and guide to reasoning models as of
2026-11-30. Prices: standard tier, dollars for a million tokens, as quoted from the vendor's price page
(developers.openai.com/api/docs/pricing) by tables dated 2026-06-20 (gpt-5, -mini, -nano), 2026-09-23 (gpt-5.6, gpt-6)
and 2026-10-09 (gpt-6.1-sol); older rows have not changed since 2025. From gpt-5.4 on the vendor charges prompts above
272,000 tokens at twice the input and one and a half times the output price, which a row cannot say: the cost of such
prompts is estimated too low. A price that no dated source gives is None. gpt-5.4 and gpt-5.5 are offered with a longer
window than the 400,000 tokens given here, at that surcharge: whoever wants it registers a row.

Traits: `chat` marks the models that take tools together with reasoning (or do not reason) on chat completions; from
gpt-5.4 on they are refused there. `always_reasons` marks those that refuse the effort `none`, `cache_breakpoints` those
that cache by marked places (the vendor's guide to prompt caching: gpt-5.6 and later).

How long a prompt stays cached, by the same guide: 30 minutes from gpt-5.6 on, 24 hours for gpt-5.5, which has no
shorter retention, and 10 minutes without use in memory before. Some of those are kept for 24 hours too unless the
organisation keeps no data, which a row cannot know: `prompt_cache_retention="24h"` says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deepstrike.providers.base import ModelInfo
from deepstrike.providers.dialects.places import BREAKPOINTS
from deepstrike.wire.policy import Price

CHAT: Final = "chat"
ALWAYS_REASONS: Final = "always_reasons"
_SAMPLING: Final = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "stop"})
_REASONING: Final = frozenset({"reasoning_context", "reasoning_effort", "reasoning_summary"})
_OLD: Final = frozenset({"prompt_cache_options"})  # from gpt-5.6 on
_OLDEST: Final = _OLD | {"verbosity"}  # from gpt-5 on


def _usd(input: float, output: float, cached: float, cache_write: float | None = None) -> Price:  # noqa: A002
    def micro(dollars: float) -> int:
        return round(dollars * 1_000_000)

    return Price(micro(input), micro(output), micro(cached), micro(input if cache_write is None else cache_write))


def _marking(model: str, window: int, price: Price | None = None, *traits: str) -> ModelInfo:
    """From gpt-5.6 on."""
    return ModelInfo(
        model, window, 128_000, price, reasoning=True, refuses=_SAMPLING, traits=frozenset({BREAKPOINTS, *traits})
    )


def _gpt6(model: str, price: Price | None = None, *traits: str) -> ModelInfo:
    return _marking(model, 1_050_000, price, *traits)


def _gpt5(model: str, price: Price, *traits: str) -> ModelInfo:
    return ModelInfo(model, 400_000, 128_000, price, reasoning=True, refuses=_SAMPLING | _OLD, traits=frozenset(traits))


def _o(model: str, price: Price) -> ModelInfo:
    traits = frozenset({CHAT, ALWAYS_REASONS})
    return ModelInfo(model, 200_000, 100_000, price, reasoning=True, refuses=_SAMPLING | _OLDEST, traits=traits)


def _plain(model: str, window: int, max_output: int, price: Price) -> ModelInfo:
    return ModelInfo(model, window, max_output, price, refuses=_REASONING | _OLDEST, traits=frozenset({CHAT}))


_ROWS = (
    _gpt6("gpt-6.2-sol", None, ALWAYS_REASONS),
    _gpt6("gpt-6.2-astra"),
    _gpt6("gpt-6.1-sol", _usd(2, 10, 0.1, 2.5), ALWAYS_REASONS),
    _gpt6("gpt-6.1-terra"),
    _gpt6("gpt-6-sol", _usd(2, 10, 0.2, 2.5)),
    _gpt6("gpt-6-luna", _usd(0.1, 0.5, 0.01, 0.125)),
    _gpt6("gpt-6-astra", _usd(10, 50, 1, 12.5), ALWAYS_REASONS),
    _marking("gpt-5.6", 400_000, _usd(4, 20, 0.4, 5)),
    _marking("gpt-5.6-sol", 400_000, _usd(4, 20, 0.4, 5)),
    _marking("gpt-5.6-terra", 400_000, _usd(2, 12, 0.2, 2.5)),
    _marking("gpt-5.6-luna", 400_000, _usd(0.2, 1.2, 0.02, 0.25)),
    _gpt5("gpt-5.5", _usd(5, 30, 0.5)),
    _gpt5("gpt-5.4", _usd(2.5, 15, 0.25)),
    _gpt5("gpt-5.4-mini", _usd(0.75, 4.5, 0.075)),
    _gpt5("gpt-5.4-nano", _usd(0.2, 1.25, 0.02)),
    _gpt5("gpt-5.2", _usd(1.75, 14, 0.175), CHAT),
    _gpt5("gpt-5.1", _usd(1.25, 10, 0.125), CHAT),
    _gpt5("gpt-5", _usd(1.25, 10, 0.125), CHAT, ALWAYS_REASONS),
    _gpt5("gpt-5-mini", _usd(0.25, 2, 0.025), CHAT, ALWAYS_REASONS),
    _gpt5("gpt-5-nano", _usd(0.05, 0.4, 0.005), CHAT, ALWAYS_REASONS),
    _plain("gpt-4.1", 1_047_576, 32_768, _usd(2, 8, 0.5)),
    _plain("gpt-4.1-mini", 1_047_576, 32_768, _usd(0.4, 1.6, 0.1)),
    _plain("gpt-4.1-nano", 1_047_576, 32_768, _usd(0.1, 0.4, 0.025)),
    _plain("gpt-4o", 128_000, 16_384, _usd(2.5, 10, 1.25)),
    _plain("gpt-4o-mini", 128_000, 16_384, _usd(0.15, 0.6, 0.075)),
    _o("o4-mini", _usd(1.1, 4.4, 0.275)),
    _o("o3", _usd(2, 8, 0.5)),
    _o("o3-mini", _usd(1.1, 4.4, 0.55)),
    _o("o1", _usd(15, 60, 7.5)),
)


def _cache_ms(info: ModelInfo) -> int:
    if BREAKPOINTS in info.traits:
        return 1_800_000
    return 86_400_000 if info.id == "gpt-5.5" else 600_000


ROWS: Final = {info.id: replace(info, cache_ms=_cache_ms(info)) for info in _ROWS}
