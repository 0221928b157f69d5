"""The model table: window, output limit, price. Nothing on the wire tells these, so a user can set every row.

Windows and limits: the vendor's documents. Prices: standard tier, dollars for a million tokens, as quoted from the
vendor's price page (developers.openai.com/api/docs/pricing) by tables dated 2026-06-20 (gpt-5, -mini, -nano),
2026-09-23 (gpt-5.6, gpt-6) and 2026-10-09 (gpt-6.1-sol); older rows have not changed since 2025. From gpt-5.6 on the
vendor charges prompts above 272,000 tokens at twice the input and one and a half times the output price, which a row
cannot say: the cost of such prompts is estimated too low. A price that no dated source gives is None.
"""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.providers.base import ModelInfo
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_WINDOW = 32_000

_REASONING_REFUSES = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "stop"})
_dated = re.compile(r"-\d{4}-\d{2}-\d{2}$|-\d{8}$")
_lock = threading.Lock()


def _usd(input: float, output: float, cached: float, cache_write: float | None = None) -> Price:  # noqa: A002
    def micro(dollars: float) -> int:
        return round(dollars * 1_000_000)

    return Price(micro(input), micro(output), micro(cached), micro(input if cache_write is None else cache_write))


def _reasoning(model: str, window: int, max_output: int, price: Price | None) -> ModelInfo:
    return ModelInfo(model, window, max_output, price, reasoning=True, refuses=_REASONING_REFUSES)


def _gpt6(model: str, price: Price | None = None) -> ModelInfo:
    return _reasoning(model, 1_050_000, 128_000, price)


def _gpt5(model: str, price: Price | None = None) -> ModelInfo:
    return _reasoning(model, 400_000, 128_000, price)


def _gpt41(model: str, price: Price) -> ModelInfo:
    return ModelInfo(model, 1_047_576, 32_768, price)


_OPENAI = (
    _gpt6("gpt-6.2-sol"),
    _gpt6("gpt-6.2-astra"),
    _gpt6("gpt-6.1-sol", _usd(2, 10, 0.1, 2.5)),
    _gpt6("gpt-6.1-terra"),
    _gpt6("gpt-6-sol", _usd(2, 10, 0.2, 2.5)),
    _gpt6("gpt-6-luna", _usd(0.1, 0.5, 0.01, 0.125)),
    _gpt6("gpt-6-astra", _usd(10, 50, 1, 12.5)),
    _gpt5("gpt-5.6-sol", _usd(4, 20, 0.4, 5)),
    _gpt5("gpt-5.6-terra", _usd(2, 12, 0.2, 2.5)),
    _gpt5("gpt-5.6-luna", _usd(0.2, 1.2, 0.02, 0.25)),
    _gpt5("gpt-5.5", _usd(5, 30, 0.5)),
    _gpt5("gpt-5.4", _usd(2.5, 15, 0.25)),
    _gpt5("gpt-5.4-mini", _usd(0.75, 4.5, 0.075)),
    _gpt5("gpt-5.4-nano", _usd(0.2, 1.25, 0.02)),
    _gpt5("gpt-5.2", _usd(1.75, 14, 0.175)),
    _gpt5("gpt-5.1", _usd(1.25, 10, 0.125)),
    _gpt5("gpt-5", _usd(1.25, 10, 0.125)),
    _gpt5("gpt-5-mini", _usd(0.25, 2, 0.025)),
    _gpt5("gpt-5-nano", _usd(0.05, 0.4, 0.005)),
    _gpt41("gpt-4.1", _usd(2, 8, 0.5)),
    _gpt41("gpt-4.1-mini", _usd(0.4, 1.6, 0.1)),
    _gpt41("gpt-4.1-nano", _usd(0.1, 0.4, 0.025)),
    ModelInfo("gpt-4o", 128_000, 16_384, _usd(2.5, 10, 1.25)),
    ModelInfo("gpt-4o-mini", 128_000, 16_384, _usd(0.15, 0.6, 0.075)),
    _reasoning("o4-mini", 200_000, 100_000, _usd(1.1, 4.4, 0.275)),
    _reasoning("o3", 200_000, 100_000, _usd(2, 8, 0.5)),
    _reasoning("o3-mini", 200_000, 100_000, _usd(1.1, 4.4, 0.55)),
    _reasoning("o1", 200_000, 100_000, _usd(15, 60, 7.5)),
)
OPENAI: dict[str, ModelInfo] = {info.id: info for info in _OPENAI}
_registered: dict[str, ModelInfo] = {}


def register(info: ModelInfo) -> None:
    """Set the row of `info.id`, for providers made from now on. It goes before the vendors' own rows."""
    if not info.id:
        raise ConfigError("a model in the table needs an id")
    if info.window < 1 or (info.max_output is not None and info.max_output < 1):
        raise ConfigError(f"the window and output limit of {info.id!r} must be above zero")
    with _lock:
        _registered[info.id] = info


def lookup(model: str, rows: Mapping[str, ModelInfo]) -> ModelInfo:
    """The row of `model`, also for a dated snapshot of it; else one with a window of 32,000 tokens and no price."""
    for table in (_registered, rows):
        for name in (model, _dated.sub("", model)):
            if (info := table.get(name)) is not None:
                return replace(info, id=model)
    return ModelInfo(model, DEFAULT_WINDOW)
