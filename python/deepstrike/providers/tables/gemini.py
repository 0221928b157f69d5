"""Gemini's models: window, output limit, price, and how each generation thinks. As of 2026-11-30.

Windows, limits, ids and thinking levels: the vendor's documents (ai.google.dev, models, thinking, thought signatures).
Prices: the vendor's price page (ai.google.dev/gemini-api/docs/pricing) as read on 2026-10-07 (3.8 Flash, 3.5, 3.1 Pro,
2.5) and by dated releases of price tables (3 Flash: 2026-04-19; 4 Argon: 2026-10-13; 4 Neon and Hydrogen: autumn 2026).
4 Argon doubles on 2026-12-01, which its row says already. 3.8 Flash doubles on 2027-01-01, which its row does not. Pro
models charge prompts above 200,000 tokens at about twice the price, which a row cannot say. Where no dated source tells
the cached price, the full input price stands in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepstrike.providers.base import ModelInfo
from deepstrike.wire.policy import Price

_WINDOW = 1_048_576
_OUTPUT = 65_536
_DOLLAR = 1_000_000


@dataclass(frozen=True, slots=True)
class Family:
    """How the models of one name think.

    `levels` are the values of `thinkingLevel`, weakest first; empty where a budget rules. `budget` says that
    `thinkingBudget` is taken, `least` is the smallest one (0: thinking can be switched off). `quiet` models think only
    when asked to. `signed` ones demand the thought signature of a reply's first function call back.
    """

    levels: tuple[str, ...] = ()
    budget: bool = False
    least: int = 0
    quiet: bool = False
    signed: bool = False

    @property
    def thinks(self) -> bool:
        """Whether it takes a thinking configuration at all."""
        return self.budget or bool(self.levels)


_THREE = ("low", "medium", "high")
_FOUR = ("minimal", *_THREE)
_PLAIN = Family()
FAMILIES: dict[str, Family] = {
    # The longest beginning of a model's name decides; a name of ours to come is taken for the newest generation.
    "gemini-": Family(_THREE, signed=True),
    "gemini-1": _PLAIN,
    "gemini-2.0": _PLAIN,
    "gemini-2.5": Family(budget=True),
    "gemini-2.5-pro": Family(budget=True, least=128),
    "gemini-2.5-flash-lite": Family(budget=True, quiet=True),
    "gemini-2.5-flash-image": _PLAIN,
    "gemini-3": Family(_FOUR, budget=True, signed=True),
    "gemini-3-pro": Family(("low", "high"), budget=True, signed=True),
    "gemini-3.1-pro": Family(_THREE, budget=True, signed=True),
}


def family(model: str) -> Family:
    """The family of `model`; one that neither thinks nor signs for a model of another name (Gemma, a tuned one)."""
    name = model.rpartition("/")[2]
    found = max((start for start in FAMILIES if name.startswith(start)), key=len, default="")
    return FAMILIES.get(found, _PLAIN)


def _row(
    model: str,
    input: float,  # noqa: A002
    output: float,
    cached: float | None = None,
    *,
    refuses: frozenset[str] = frozenset(),
) -> ModelInfo:
    dollars = (input, output, input if cached is None else cached, input)
    price = Price(*(round(each * _DOLLAR) for each in dollars))
    return ModelInfo(model, _WINDOW, _OUTPUT, price, reasoning=family(model).thinks, refuses=refuses)


_NO_BUDGET = frozenset({"thinking_budget"})
_ROWS = (
    _row("gemini-4-argon", 4, 20, 0.2, refuses=_NO_BUDGET),
    _row("gemini-4-neon", 3, 15, 0.15, refuses=_NO_BUDGET),
    _row("gemini-4-hydrogen", 1.5, 7.5, 0.075, refuses=_NO_BUDGET),
    _row("gemini-3.8-flash", 0.75, 3.75, 0.075),
    _row("gemini-3.5-flash", 1.5, 9),
    _row("gemini-3.5-flash-lite", 0.3, 2.5),
    _row("gemini-3.1-pro-preview", 2, 12),
    _row("gemini-3-flash-preview", 0.5, 3),
    ModelInfo("gemini-3-pro-preview", _WINDOW, _OUTPUT, reasoning=True),
    _row("gemini-2.5-pro", 1.25, 10),
    _row("gemini-2.5-flash", 0.3, 2.5),
    _row("gemini-2.5-flash-lite", 0.1, 0.4),
)
ROWS: dict[str, ModelInfo] = {info.id: info for info in _ROWS}
