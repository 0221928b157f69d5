"""When a failed try is repeated, and how long to wait before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.errors import CircuitOpen
from deepstrike.providers.settings import check_count, check_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.errors import ProviderError

LONGEST_HINT_SECONDS = 120.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """Retries and circuit breaker of an endpoint; durations in seconds.

    A call is tried at most `1 + max_retries` times, and never again once text or a tool call was shown. The wait is the
    server's own hint (`retry-after-ms`, `Retry-After`) if it is above zero and at most 120 s; a longer hint ends the
    call. Without one it is `base_delay` doubled with every retry, at most `max_delay`, less up to a quarter by chance.
    `circuit_open_after` failures in a row open the endpoint's circuit breaker for `circuit_reset_after`.
    """

    max_retries: int = 3
    base_delay: float = 1.0
    max_delay: float = 8.0
    circuit_open_after: int = 5
    circuit_reset_after: float = 60.0

    def __post_init__(self) -> None:
        for name in ("max_retries", "circuit_open_after"):
            check_count(f"RetryConfig.{name}", getattr(self, name), 0)
        for name in ("base_delay", "max_delay", "circuit_reset_after"):
            check_seconds(f"RetryConfig.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class Hint:
    """What a refusing server said about trying again: a wait in seconds, and a plain yes or no."""

    wait: float | None = None
    again: bool | None = None


NO_HINT = Hint()


class Refused(Exception):
    """An HTTP answer was an error: `fault` for the caller, `hint` for the retry schedule."""

    def __init__(self, fault: ProviderError, hint: Hint) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.hint = hint


def read_hint(headers: Mapping[str, str], now_ms: int) -> Hint:
    """The hint in an answer's headers. Zero and what cannot be read mean none: the next header, or none, counts."""
    wait = _seconds(headers.get("retry-after-ms"), 0.001) or _retry_after(headers.get("retry-after"), now_ms)
    again = {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())
    return Hint(wait or None, again)


def wait_before(config: RetryConfig, retry: int, fault: ProviderError, hint: Hint) -> float | None:
    """Seconds to wait before the `retry`-th retry (from 0), None when there must be none."""
    again = fault.retryable if hint.again is None else hint.again
    if not again or retry >= config.max_retries or isinstance(fault, CircuitOpen):
        return None
    if hint.wait is not None:
        return hint.wait if hint.wait <= LONGEST_HINT_SECONDS else None
    import random

    # A float's exponent is bounded; the delay is long at its limit by then.
    delay = min(config.base_delay * 2.0 ** min(retry, 64), config.max_delay)
    return delay * (1 - _JITTER * random.random())


def _seconds(text: str | None, unit: float) -> float:
    try:
        value = float(text) if text else 0.0
    except ValueError:
        return 0.0
    return value * unit if math.isfinite(value) and value > 0 else 0.0


def _retry_after(text: str | None, now_ms: int) -> float:
    """`Retry-After` in either form: seconds, or a date."""
    if not text or (seconds := _seconds(text, 1.0)):
        return seconds if text else 0.0
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return 0.0
    return max(0.0, date.timestamp() - now_ms / 1000)
