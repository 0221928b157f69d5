"""What the decoders of all dialects have in common: payload by payload, an error kept until the end."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from deepstrike.errors import ProviderError, Truncated
from deepstrike.providers.dialects.mending import mended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.base import ModelEvent
    from deepstrike.providers.faults import Faults

_log = logging.getLogger("deepstrike.providers")
_SHOWN = 200


class Reading(ABC):
    """The reading of one answer; `faults` makes the exceptions. See `Decoder` for what it promises."""

    __slots__ = ("_damaged", "_fault", "_faults", "_finish", "done")

    def __init__(self, faults: Faults) -> None:
        self.done = False
        self._faults = faults
        self._damaged = False
        self._fault: ProviderError | None = None
        self._finish: str | None = None

    @property
    def finished(self) -> bool:
        """A finish reason was seen."""
        return self._finish is not None

    def feed(self, payloads: Sequence[bytes]) -> list[ModelEvent]:
        """The events of these payloads, in order."""
        out: list[ModelEvent] = []
        for payload in payloads:
            self._payload(payload, out)
            if self.done:
                break
        return out

    def feed_last(self, payload: bytes) -> list[ModelEvent]:
        """As `feed`, unless the payload is not whole."""
        return [] if mended(payload) is None else self.feed([payload])

    @abstractmethod
    def _payload(self, payload: bytes, out: list[ModelEvent]) -> None:
        """Read one payload; its events go into `out`. Nothing is raised."""

    def _fail(self, fault: ProviderError) -> None:
        """Kept until the end, so that what came before it is shown however the bytes were cut."""
        self._fault = self._fault or fault
        self.done = True

    def _reason(self, missing: str) -> str:
        """Why the model stopped. Raises the error that was inside the answer, and `Truncated` without a reason."""
        if self._fault is not None:
            raise self._fault
        if self._finish is None:
            raise Truncated(f"the stream ended without {missing}: the answer was cut on its way; ask again")
        return self._finish

    def _pass_over(self, payload: bytes, fault: Exception, what: str) -> None:
        """Tell of a part that could not be read. What it held is lost: whoever needs it looks at `_damaged`."""
        mask = self._faults.mask
        shown = mask.beginning(payload, _SHOWN)
        _log.warning("passed over a part of the stream that is %s (%s): %s", what, mask(str(fault)), shown)


def bad_stream(lost: str) -> ProviderError:
    """The answer is whole and a part of it was lost that cannot be done without."""
    return ProviderError(f"a part of the stream could not be read{lost}; ask again", code="bad_stream", retryable=True)
