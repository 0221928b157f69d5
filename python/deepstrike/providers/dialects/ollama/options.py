"""What of a request Ollama's server is told apart from the messages: the window, and whether to think."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deepstrike.providers.tables.ollama import thinks_by_level

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked

# Efforts of other vendors, in the words that Ollama takes.
_LEVELS = {"none": "low", "minimal": "low", "xhigh": "high"}


def window(asked: Asked) -> int:
    """The context window to ask for: an explicit one, else that of the request.

    It must be the same on every request: a server that is told another one loads the model anew.
    """
    return explicit_window({**asked.info.defaults, **asked.request.extensions}) or asked.request.window


def explicit_window(given: Mapping[str, object]) -> int | None:
    """`num_ctx` among these extensions, in any of its places, the one that is sent."""
    extra = given.get("extra_body")
    inner = extra.get("options") if isinstance(extra, Mapping) else None
    for holder in (inner, given, given.get("options")):
        wanted = holder.get("num_ctx") if isinstance(holder, Mapping) else None
        if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0:
            return wanted
    return None


def think(wish: Mapping[str, object], model: str) -> bool | str | None:
    """The `think` field; None leaves it to the model. `wish` has `enable` and `effort`, as far as they were given.

    gpt-oss takes a level only and cannot be switched off, so it thinks as little as it can; all others are switched.
    """
    enable, effort = wish.get("enable"), wish.get("effort")
    if isinstance(effort, str) and enable is not False:
        return _LEVELS.get(effort, effort) if thinks_by_level(model) else effort != "none"
    if not isinstance(enable, bool):
        return None
    if thinks_by_level(model):
        return None if enable else "low"
    return enable
