"""Where signals come from, for whoever brings a source of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from deepstrike.signals.signal import RuntimeSignal


class SignalSource(Protocol):
    """Anything with `next_signal`. `SignalGateway` is one."""

    async def next_signal(self) -> RuntimeSignal | None:
        """The next signal, each once. It may wait as long as it likes; None means none now, ask again later.

        One that waits is heard at once. One that gives None is asked again before each model call, and not waited for
        there. It is called while a run is active (or `listen`), once at a time, and cancelled when none is: take
        nothing then that cannot be given again. What it raises is reported once, and it is asked again later.
        """
