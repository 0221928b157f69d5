"""Qwen's models at Alibaba's Model Studio. As of 2026-11-30.

Windows and limits: the vendor's documents (Model Studio, models). The service enforces a limit on the input that lies
below the window, and lower still while the model thinks (983,616 of 1,000,000 tokens for qwen3.8-max): rows hold that
number as the window. Whether a model thinks unless told is each generation's own habit, so every row says it. Prices
depend on region and on the length of the prompt, which a row cannot say: None. Which models cache at marked places: the
vendor's page on the context cache (help/model-studio/context-cache): at most four marks, each found up to 20 blocks
back, kept five minutes from the last hit; a write costs 1.25 times the input, a hit a tenth of it.
"""

from __future__ import annotations

from deepstrike.providers.base import ModelInfo
from deepstrike.providers.dialects.places import BREAKPOINTS

_MILLION = 983_616
_THINKS = {"enable_thinking": True}
_QUIET = {"enable_thinking": False}
_MARKED = frozenset({BREAKPOINTS})


def _new(model: str, max_output: int | None) -> ModelInfo:
    return ModelInfo(model, _MILLION, max_output, reasoning=True, defaults=_THINKS, traits=_MARKED)


def _older(model: str, window: int, traits: frozenset[str] = _MARKED) -> ModelInfo:
    return ModelInfo(model, window, reasoning=True, defaults=_QUIET, traits=traits)


_ROWS = (
    _new("qwen3.8-max", 131_072),
    _new("qwen3.7-max", 65_536),
    _new("qwen3.7-plus", 65_536),
    _new("qwen3.5-plus", 65_536),
    _older("qwen3-max", 262_144),
    _older("qwen-plus", _MILLION),
    _older("qwen-flash", _MILLION),
    _older("qwen-turbo", 131_072, frozenset()),
)
ROWS: dict[str, ModelInfo] = {info.id: info for info in _ROWS}
