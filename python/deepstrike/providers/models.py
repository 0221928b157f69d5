"""The model table: window, output limit, price. Nothing on the wire tells these, so a user can set every row.

The vendors' rows are in `tables/`, one file a vendor, each with its sources and their date.
"""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.providers.base import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_WINDOW = 32_000

_dated = re.compile(r"-\d{4}-\d{2}-\d{2}$|-\d{8}$")
_lock = threading.Lock()
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
