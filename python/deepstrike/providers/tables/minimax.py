"""MiniMax's models. As of 2026-11-30.

Windows and modes: the vendor's documents (platform.minimax.io, models). The M2 generation always thinks and sees no
images. Prices: M3 as read on 2026-09-11, for prompts up to 512,000 tokens (longer ones cost twice that, which a row
cannot say); M2.7 by a table of 2026-04-21 that quotes the vendor's price page. Others are not known: None.
"""

from __future__ import annotations

from deepstrike.providers.base import ModelInfo
from deepstrike.providers.dialects.chat.dialect import NO_IMAGES
from deepstrike.wire.policy import Price

_M2_WINDOW = 204_800
# Not documented on the chat route, where other clients found them refused or without effect.
_REFUSES = frozenset(
    {"tool_choice", "response_format", "seed", "presence_penalty", "frequency_penalty", "parallel_tool_calls"}
)


def _m2(model: str, price: Price | None = None) -> ModelInfo:
    refuses, traits = _REFUSES | {"enable_thinking"}, frozenset({NO_IMAGES})
    return ModelInfo(model, _M2_WINDOW, None, price, reasoning=True, refuses=refuses, traits=traits)


_ROWS = (
    ModelInfo(
        "MiniMax-M3",
        1_000_000,
        None,
        Price(300_000, 1_200_000, 60_000, 300_000),
        reasoning=True,
        refuses=_REFUSES,
        # The vendor's pages disagree on whether it thinks unless told, so it is told.
        defaults={"enable_thinking": True},
    ),
    _m2("MiniMax-M2.7", Price(300_000, 1_200_000, 60_000, 375_000)),
    _m2("MiniMax-M2.7-highspeed", Price(600_000, 2_400_000, 60_000, 375_000)),
    _m2("MiniMax-M2.5"),
    _m2("MiniMax-M2.5-highspeed"),
    _m2("MiniMax-M2.1"),
    _m2("MiniMax-M2.1-highspeed"),
    _m2("MiniMax-M2"),
    ModelInfo("M2-her", 64_000, refuses=_REFUSES | {"enable_thinking"}, traits=frozenset({NO_IMAGES})),
)
ROWS: dict[str, ModelInfo] = {info.id: info for info in _ROWS}
