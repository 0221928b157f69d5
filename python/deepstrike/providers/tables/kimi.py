"""Kimi's models. As of 2026-11-30.

Windows, modes and what is refused: the vendor's documents (platform.kimi.ai; `GET /v1/models` reports the windows).
Every K model fixes its sampling: another value is an error. Prices: kimi-k3 as read on 2026-07-18, kimi-k2.6 in May
2026, both from tables that quote the vendor's price page; others are not known: None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.base import ModelInfo
from deepstrike.providers.dialects.chat.dialect import TAKES_REQUIRED
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFUSES = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"})
_QUARTER = 262_144


def _k(
    model: str,
    window: int,
    max_output: int | None = None,
    price: Price | None = None,
    defaults: Mapping[str, object] | None = None,
    traits: frozenset[str] = frozenset(),
) -> ModelInfo:
    return ModelInfo(model, window, max_output, price, True, _REFUSES, defaults or {}, traits)


_ROWS = (
    _k(
        "kimi-k3",
        1_048_576,
        131_072,
        Price(3_000_000, 15_000_000, 300_000, 3_000_000),
        None,
        frozenset({TAKES_REQUIRED}),
    ),
    _k("kimi-k2.7-code", _QUARTER),
    _k("kimi-k2.7-code-highspeed", _QUARTER),
    _k("kimi-k2.6", _QUARTER, None, Price(950_000, 4_000_000, 160_000, 950_000), {"enable_thinking": True}),
    _k("kimi-for-coding", _QUARTER),
)
ROWS: dict[str, ModelInfo] = {info.id: info for info in _ROWS}
