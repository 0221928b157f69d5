"""One address that is asked: how it is reached, limited and guarded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepstrike.providers.faults import Faults
    from deepstrike.providers.retry import RetryConfig
    from deepstrike.providers.transport.base import Timeouts, Transport
    from deepstrike.providers.transport.breaker import CircuitBreaker
    from deepstrike.providers.transport.slots import Slots


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What every call to an address shares. `slots` is None where calls in flight are not limited."""

    base_url: str
    transport: Transport
    timeouts: Timeouts
    retry: RetryConfig
    breaker: CircuitBreaker
    slots: Slots | None
    faults: Faults
