"""How much a Gemini model is to think: one vocabulary for levels (from Gemini 3 on) and budgets (2.5).

Source: the vendor's page on thinking, with the equivalents that its OpenAI-compatible interface uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.tables.gemini import Family

_STRENGTH = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 24_576, "max": 24_576}
_AS_NEEDED = -1


def thinking_config(wish: Mapping[str, object], family: Family, *, shown: bool) -> dict[str, object]:
    """The `thinkingConfig` for a `wish` of `enable`, `effort`, `level` and `budget`, as far as they were given.

    A `level` is sent as it is, an `effort` (a word that other vendors take too) becomes the nearest level at or above
    it, or a budget. Switching thinking off gives the least that the model can do. Thoughts are asked for where they are
    `shown` and the model thinks at all: asking for them without thinking is an error.
    """
    if not family.thinks:
        return {}
    config = _by_level(wish, family) if family.levels else _by_budget(wish, family)
    thinks = config.get("thinkingBudget") != 0 and (bool(config) or not family.quiet)
    if shown and thinks:
        config["includeThoughts"] = True
    return config


def _by_level(wish: Mapping[str, object], family: Family) -> dict[str, object]:
    level, effort, budget = wish.get("level"), wish.get("effort"), wish.get("budget")
    if isinstance(level, str):
        return {"thinkingLevel": level}
    if wish.get("enable") is False:
        return {"thinkingLevel": family.levels[0]}
    if isinstance(effort, str):
        return {"thinkingLevel": _nearest(effort, family.levels)}
    return {"thinkingBudget": budget} if isinstance(budget, int) and family.budget else {}


def _nearest(effort: str, levels: tuple[str, ...]) -> str:
    word = effort.lower()
    if word not in _STRENGTH:
        return effort
    wanted = _STRENGTH.index(word)
    return next((level for level in levels if _STRENGTH.index(level) >= wanted), levels[-1])


def _by_budget(wish: Mapping[str, object], family: Family) -> dict[str, object]:
    budget, enable = wish.get("budget"), wish.get("enable")
    effort = wish.get("effort") or wish.get("level")
    if isinstance(budget, int):
        return {"thinkingBudget": budget}
    if enable is False:
        return {"thinkingBudget": family.least}
    if isinstance(effort, str) and effort.lower() in _BUDGETS:
        return {"thinkingBudget": max(family.least, _BUDGETS[effort.lower()])}
    return {"thinkingBudget": _AS_NEEDED} if enable is True else {}
