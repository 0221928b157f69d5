"""DeepSeek's models. As of 2026-11-30.

Windows, limits, modes: the vendor's documents (api-docs.deepseek.com, models and pricing, thinking mode). Both models
think unless told not to; `deepseek-v4-flash` is another name of `deepseek-flash`. The reasoner of the first generation,
switched off at the vendor on 2026-07-24 but still served elsewhere, takes no tools and refuses its own reasoning.
Temperature, top_p and the penalties have no effect while a model thinks.
Prices: the vendor's page as read on 2026-10-27, those of the peak hours (01:00-04:00 and 06:00-10:00 UTC on working
days); at other times half of it is charged, which a row cannot say.

Prompts are cached on disk and forgotten some hours to days after their last use (api-docs.deepseek.com, context
caching): two hours are taken for certain.
"""

from __future__ import annotations

from dataclasses import replace

from deepstrike.providers.base import ModelInfo
from deepstrike.providers.dialects.chat.dialect import FORGETS_REASONING, NO_IMAGES, NO_TOOLS
from deepstrike.providers.extensions import THINKS_UNSAMPLED
from deepstrike.wire.policy import Price

_CACHE_MS = 2 * 3_600_000
_WINDOW = 1_048_565
_OUTPUT = 384_000
_FLASH = Price(300_000, 1_200_000, 6_000, 300_000)
_PRO = Price(1_320_000, 3_960_000, 44_000, 1_320_000)
_THINKS = {"enable_thinking": True}
_FIRST = frozenset({NO_TOOLS, NO_IMAGES, FORGETS_REASONING})
_SAMPLING = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"})
_FIRST_REFUSES = _SAMPLING | {"enable_thinking", "reasoning_effort", "tool_choice", "parallel_tool_calls"}


def _first(model: str) -> ModelInfo:
    return ModelInfo(model, 64_000, 8_000, reasoning=True, refuses=_FIRST_REFUSES, traits=_FIRST)


def _thinking(model: str, price: Price, traits: frozenset[str] = frozenset()) -> ModelInfo:
    traits |= {THINKS_UNSAMPLED}
    return ModelInfo(model, _WINDOW, _OUTPUT, price, True, _SAMPLING, _THINKS, traits)


_ROWS = (
    _thinking("deepseek-flash", _FLASH),
    _thinking("deepseek-v4-flash", _FLASH),
    _thinking("deepseek-v4-pro", _PRO, frozenset({NO_IMAGES})),
    _first("deepseek-reasoner"),
    _first("deepseek-r1"),
)
ROWS: dict[str, ModelInfo] = {info.id: replace(info, cache_ms=_CACHE_MS) for info in _ROWS}
