"""Qwen's models at Alibaba's Model Studio. As of 2026-11-30.

Windows and limits: the vendor's documents (Model Studio, models). The service enforces a limit on the input that lies
below the window, and lower still while the model thinks (983,616 of 1,000,000 tokens for qwen3.8-max): rows hold that
number as the window. Whether a model thinks unless told is each generation's own habit, so every row says it. Prices
depend on region and on the length of the prompt, which a row cannot say: None.
"""

from __future__ import annotations

from deepstrike.providers.base import ModelInfo

_MILLION = 983_616
_THINKS = {"enable_thinking": True}
_QUIET = {"enable_thinking": False}


def _new(model: str, max_output: int | None) -> ModelInfo:
    return ModelInfo(model, _MILLION, max_output, reasoning=True, defaults=_THINKS)


def _older(model: str, window: int) -> ModelInfo:
    return ModelInfo(model, window, reasoning=True, defaults=_QUIET)


_ROWS = (
    _new("qwen3.8-max", 131_072),
    _new("qwen3.7-max", 65_536),
    _new("qwen3.7-plus", 65_536),
    _new("qwen3.5-plus", 65_536),
    _older("qwen3-max", 262_144),
    _older("qwen-plus", _MILLION),
    _older("qwen-flash", _MILLION),
    _older("qwen-turbo", 131_072),
)
ROWS: dict[str, ModelInfo] = {info.id: info for info in _ROWS}
