"""What is known of models that Ollama serves. Source: Ollama's API documents on thinking, as of 2026-11-30.

Windows are not listed: a model gets the one that is asked for (`num_ctx`).
"""

from __future__ import annotations

_LEVELS_ONLY = ("gpt-oss",)


def thinks_by_level(model: str) -> bool:
    """Whether `model` takes an effort (low, medium, high) in `think` and ignores true and false."""
    return model.rpartition("/")[2].startswith(_LEVELS_ONLY)
