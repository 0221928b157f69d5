"""When a try is repeated, and after what wait."""

from __future__ import annotations

import pytest

from deepstrike.errors import (
    BadRequest,
    CircuitOpen,
    ConfigError,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
)
from deepstrike.providers.retry import NO_HINT, Hint, RetryConfig, read_hint, wait_before

NOW_MS = 1_700_000_000_000  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({}, Hint()),
        ({"retry-after": "2"}, Hint(2.0)),
        ({"retry-after": "2.5"}, Hint(2.5)),
        ({"retry-after-ms": "1500.5"}, Hint(1.5005)),
        ({"retry-after-ms": "100", "retry-after": "7"}, Hint(0.1)),
        ({"retry-after-ms": "0", "retry-after": "1"}, Hint(1.0)),
        ({"retry-after-ms": "0", "retry-after": "0"}, Hint()),
        ({"retry-after-ms": "soon", "retry-after": "nan"}, Hint()),
        ({"retry-after": "-3"}, Hint()),
        ({"retry-after": "Tue, 14 Nov 2023 22:14:20 GMT"}, Hint(60.0)),
        ({"retry-after": "Tue, 14 Nov 2023 22:12:20 GMT"}, Hint()),
        ({"retry-after": "Tue, 99 Nov"}, Hint()),
        ({"x-should-retry": "true"}, Hint(None, True)),
        ({"x-should-retry": "false", "retry-after": "1"}, Hint(1.0, False)),
        ({"x-should-retry": "maybe"}, Hint()),
    ],
)
def test_given_headers_when_read_then_the_hint_is_this(headers: dict[str, str], hint: Hint) -> None:
    assert read_hint(headers, NOW_MS) == hint


@pytest.mark.parametrize(
    ("fault", "hint", "wait"),
    [
        (RateLimited("x"), Hint(2.0), 2.0),
        (RateLimited("x"), Hint(120.0), 120.0),
        (RateLimited("x"), Hint(120.1), None),
        (QuotaExhausted("x"), Hint(2.0), None),
        (BadRequest("x"), Hint(2.0), None),
        (BadRequest("x"), Hint(2.0, True), 2.0),
        (Overloaded("x"), Hint(2.0, False), None),
        (CircuitOpen("x"), Hint(2.0, True), None),
    ],
)
def test_given_a_failure_with_a_hint_when_asked_then_the_hint_rules(
    fault: ProviderError, hint: Hint, wait: float | None
) -> None:
    assert wait_before(RetryConfig(), 0, fault, hint) == wait


def test_given_no_hint_when_retries_go_on_then_waits_double_up_to_the_limit_less_a_quarter_at_most() -> None:
    config = RetryConfig(max_retries=80, base_delay=1.0, max_delay=8.0)
    for retry, longest in enumerate([1.0, 2.0, 4.0, 8.0, 8.0]):
        waits = [wait_before(config, retry, Overloaded("x"), NO_HINT) or 0.0 for _ in range(50)]
        assert all(longest * 0.75 <= wait <= longest for wait in waits)
        assert len(set(waits)) > 1, "no jitter"
    assert (wait_before(config, 79, Overloaded("x"), NO_HINT) or 0.0) <= 8.0


def test_given_the_last_retry_when_it_failed_then_there_is_no_other() -> None:
    config = RetryConfig(max_retries=2)
    assert [wait_before(config, retry, Overloaded("x"), Hint(1.0)) for retry in range(4)] == [1.0, 1.0, None, None]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"max_retries": True},
        {"base_delay": -0.1},
        {"max_delay": float("nan")},
        {"circuit_open_after": "5"},
        {"circuit_reset_after": float("inf")},
        {"circuit_reset_after": 1e308},
        {"max_retries": 2**53},
        {"max_delay": 10**5000},
    ],
)
def test_given_a_wrong_value_when_configured_then_the_error_names_it(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RetryConfig(**wrong)  # type: ignore[arg-type]
