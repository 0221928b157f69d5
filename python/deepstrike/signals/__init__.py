"""Signals: what comes into runs from outside, and when."""

from __future__ import annotations

from deepstrike.signals.gateway import SignalGateway
from deepstrike.signals.schedule import ScheduledPrompt
from deepstrike.signals.signal import RuntimeSignal, Urgency
from deepstrike.signals.source import SignalSource

__all__ = ["RuntimeSignal", "ScheduledPrompt", "SignalGateway", "SignalSource", "Urgency"]
