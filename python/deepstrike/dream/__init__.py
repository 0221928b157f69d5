"""Dreaming: what finished sessions come to is drawn from them and kept, after the runs are over."""

from __future__ import annotations

from deepstrike.dream.dreaming import DreamFailure, DreamResult, dream

__all__ = ["DreamFailure", "DreamResult", "dream"]
