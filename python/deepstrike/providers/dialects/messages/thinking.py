"""How much a model thinks: one field of the request, whose form depends on the model's generation.

Source: the vendor's pages on thinking, its troubleshooting table, the migration guides of each model (November 2026).
The traits of `ModelInfo` that count here:

* `budget`: takes `enabled` with a budget of tokens (up to 4.6; from 4.7 on it is refused)
* `adaptive`: the model itself decides how much (from 4.6 on)
* `thinks`: does so unless it is told otherwise (from 5 on)
* `always_thinks`: cannot be told otherwise
* `between_tools`: is told otherwise with that word instead of `disabled`
* `quiet`: leaves the text of its thinking out unless it is asked for a summary (from 4.7 on)
* `prefix_bound`: its thinking is bound to everything before it; of a changed prompt the service is asked to drop it

A model without any of them is taken for a new one: it thinks when `enable_thinking` says so, adaptively.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.base import ModelInfo

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The value of `anthropic-beta` without which the service refuses the field `block_binding`."""

LEAST_BUDGET = 1024


def thinking_field(
    given: Mapping[str, object], info: ModelInfo, max_tokens: int, *, budget_allowed: bool = True
) -> dict[str, object] | None:
    """The field `thinking`, None where none is sent. `given` are the extensions without those that the model refuses.

    A budget lies between 1024 and the output limit, half of which it is where only `enable_thinking` is given; where
    that leaves no room, or `budget_allowed` is false, there is no thinking.
    """
    budget = given.get("thinking_budget")
    wanted = _wanted(given, info)
    if not wanted:
        return _off(given, info)
    if _takes_budget(budget, info):
        return _enabled(budget, max_tokens) if budget_allowed else None
    return _adaptive(given, info)


def thinks_by_budget(given: Mapping[str, object], info: ModelInfo) -> bool:
    """Whether these extensions make the model think within a budget, which excludes other fields."""
    return _wanted(given, info) and _takes_budget(given.get("thinking_budget"), info)


def _wanted(given: Mapping[str, object], info: ModelInfo) -> bool:
    if "always_thinks" in info.traits:
        return True
    said = given.get("enable_thinking")
    if said is None and given.get("reasoning_effort") == "none":
        return False
    if said is None:
        return given.get("thinking_budget") is not None or "thinks" in info.traits
    return said is True


def _takes_budget(budget: object, info: ModelInfo) -> bool:
    if "adaptive" in info.traits:
        return budget is not None and "budget" in info.traits
    return "budget" in info.traits or budget is not None


def _enabled(budget: object, max_tokens: int) -> dict[str, object] | None:
    asked = budget if isinstance(budget, int) else max_tokens // 2
    tokens = min(max(asked, LEAST_BUDGET), max_tokens - 1)
    return None if tokens < LEAST_BUDGET else {"type": "enabled", "budget_tokens": tokens}


def _adaptive(given: Mapping[str, object], info: ModelInfo) -> dict[str, object]:
    field: dict[str, object] = {"type": "adaptive"}
    if "quiet" in info.traits and given.get("expose_reasoning") is not False:
        field["display"] = "summarized"
    if "prefix_bound" in info.traits:
        field["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    return field


def _off(given: Mapping[str, object], info: ModelInfo) -> dict[str, object] | None:
    """Nothing where the model does not think by itself."""
    if "between_tools" in info.traits:
        return {"type": "between_tools"}
    unknown = not info.traits and given.get("enable_thinking") is False
    return {"type": "disabled"} if "thinks" in info.traits or unknown else None
