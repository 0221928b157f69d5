"""A signal from outside a run."""

from __future__ import annotations

from deepstrike.wire.message import Wire


class Signal(Wire, frozen=True):
    """`payload` is JSON text; urgency is one of low, normal, high, critical.

    `id` names one delivery: brought twice, it is heard once. `from_user`: the user says it, `payload` is `{"text": …}`.
    """

    kind: str
    payload: str
    source: str = "custom"
    signal_type: str = "event"
    urgency: str = "normal"
    dedupe_key: str | None = None
    id: str | None = None
    from_user: bool = False
