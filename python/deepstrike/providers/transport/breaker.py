"""The circuit breaker: after repeated failures of an endpoint, calls fail at once for a while."""

from __future__ import annotations

import threading
from typing import Literal

from deepstrike.clock import current_clock
from deepstrike.errors import ConfigError
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.settings import shown

Gate = Literal["closed", "half_open", "open"]
"""What a call meets: nothing in its way, leave to probe, or a refusal."""

_MOST_SHARED = 1024
_shared: dict[tuple[str, int, float], CircuitBreaker] = {}
_shared_lock = threading.Lock()


class CircuitBreaker:
    """Counts failures in a row. Safe for several threads and loops.

    Closed until `circuit_open_after` failures in a row; then open for `circuit_reset_after` seconds; then half-open:
    one call is let through as a probe. Its success closes the breaker, its failure opens it again. A probe that reports
    nothing is given up after another `circuit_reset_after` seconds. `circuit_open_after=0` never opens.
    """

    def __init__(self, config: RetryConfig) -> None:
        if not isinstance(config, RetryConfig):
            raise ConfigError(f"CircuitBreaker takes its limits from a RetryConfig(…), not from {shown(config)}")
        self._open_after = config.circuit_open_after
        self._reset_ms = round(config.circuit_reset_after * 1000)
        self._lock = threading.Lock()
        self._failures = 0
        self._probing = False
        self._waits_until: int | None = None

    def is_open(self) -> bool:
        """Whether a call must not be made now. When half-open, the caller that gets False is the probe."""
        return self.enter() == "open"

    def enter(self) -> Gate:
        """What a call made now meets. Half-open, one caller gets leave to probe; the others meet an open breaker."""
        if self._waits_until is None:  # the common case, without the lock
            return "closed"
        return self._gate(current_clock().now_ms())

    def _gate(self, now: int) -> Gate:
        with self._lock:
            until = self._waits_until
            if until is None:
                return "closed"
            if now < until:
                return "open"
            self._waits_until = now + self._reset_ms
            self._probing = True
            return "half_open"

    def record_success(self) -> bool:
        """The endpoint answered: close. True if it was not closed before."""
        if not self._failures and self._waits_until is None:
            return False
        with self._lock:
            was_closed = self._waits_until is None
            self._failures = 0
            self._probing = False
            self._waits_until = None
            return not was_closed

    def record_failure(self) -> bool:
        """The endpoint failed: one more in a row, or a failed probe. True if that opened the breaker."""
        now = current_clock().now_ms()
        with self._lock:
            self._failures += 1
            if not self._open_after or self._failures < self._open_after:
                return False
            was_open = self._waits_until is not None and not self._probing
            self._probing = False
            self._waits_until = now + self._reset_ms
            return not was_open

    def release(self) -> None:
        """A call ended without telling anything of the endpoint (it was cancelled): the next one may probe at once."""
        if self._waits_until is not None:
            now = current_clock().now_ms()
            with self._lock:
                self._probing = False
                if self._waits_until is not None:
                    self._waits_until = min(self._waits_until, now)

    def seconds_left(self) -> float:
        """Seconds until the next probe may be made; 0 when closed."""
        until = self._waits_until
        return 0.0 if until is None else max(0.0, (until - current_clock().now_ms()) / 1000)

    def __repr__(self) -> str:
        return f"CircuitBreaker(failures={self._failures}, open={self._waits_until is not None})"


def shared_breaker(base_url: str, config: RetryConfig) -> CircuitBreaker:
    """The process's breaker of an endpoint; endpoints are told apart by address and by the breaker's two settings."""
    key = (base_url, config.circuit_open_after, config.circuit_reset_after)
    with _shared_lock:
        breaker = _shared.get(key)
        if breaker is None:
            if len(_shared) >= _MOST_SHARED:
                _shared.pop(next(iter(_shared)))
            breaker = _shared[key] = CircuitBreaker(config)
        return breaker
