"""The circuit breaker, by the clock."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import pytest

from deepstrike.errors import ConfigError
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker, shared_breaker
from deepstrike.testing.clock import ManualClock

CONFIG = RetryConfig(circuit_open_after=3, circuit_reset_after=60)


@pytest.mark.parametrize("wrong", [None, 5, RetryConfig])
def test_given_no_config_when_made_then_the_error_says_what_to_give(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"takes its limits from a RetryConfig\(…\)"):
        CircuitBreaker(wrong)


async def test_given_failures_in_a_row_when_there_are_enough_then_it_opens_and_probes_one_call_later() -> None:
    with ManualClock() as clock:
        breaker = CircuitBreaker(CONFIG)
        for _ in range(2):
            breaker.record_failure()
        assert not breaker.is_open()
        breaker.record_failure()
        assert breaker.is_open()
        await clock.advance(59.9)
        assert breaker.is_open()
        await clock.advance(0.2)
        assert [breaker.is_open() for _ in range(3)] == [False, True, True], "one probe, no more"


async def test_given_a_probe_when_it_succeeds_then_the_breaker_closes() -> None:
    with ManualClock() as clock:
        breaker = opened()
        await clock.advance(60)
        assert not breaker.is_open()
        breaker.record_success()
        assert [breaker.is_open() for _ in range(3)] == [False, False, False]
        breaker.record_failure()
        assert not breaker.is_open(), "the count begins anew"


async def test_given_a_probe_when_it_fails_then_the_breaker_opens_for_another_span() -> None:
    with ManualClock() as clock:
        breaker = opened()
        await clock.advance(60)
        assert not breaker.is_open()
        breaker.record_failure()
        await clock.advance(59)
        assert breaker.is_open()
        await clock.advance(1)
        assert not breaker.is_open()


async def test_given_a_probe_that_was_cancelled_when_released_then_the_next_call_may_probe() -> None:
    with ManualClock() as clock:
        breaker = opened()
        await clock.advance(60)
        assert not breaker.is_open()
        breaker.release()
        assert not breaker.is_open()
        assert breaker.is_open()


async def test_given_a_probe_that_reports_nothing_when_another_span_has_passed_then_the_next_may_go() -> None:
    with ManualClock() as clock:
        breaker = opened()
        await clock.advance(60)
        assert not breaker.is_open()
        await clock.advance(60)
        assert not breaker.is_open()


def test_given_a_success_between_failures_when_counted_then_they_are_not_in_a_row() -> None:
    breaker = CircuitBreaker(CONFIG)
    for _ in range(5):
        breaker.record_failure()
        breaker.record_failure()
        breaker.record_success()
    assert not breaker.is_open()


def test_given_zero_as_threshold_when_calls_fail_then_it_never_opens() -> None:
    breaker = CircuitBreaker(RetryConfig(circuit_open_after=0))
    for _ in range(100):
        breaker.record_failure()
    assert not breaker.is_open()


async def test_given_many_threads_when_half_open_then_exactly_one_is_let_through() -> None:
    with ManualClock() as clock:
        breaker = opened()
        await clock.advance(60)
        start = threading.Barrier(16)
        passed: list[bool] = []

        def probe() -> None:
            start.wait()
            passed.append(breaker.is_open())

        here = contextvars.copy_context()  # the manual clock counts for the threads too
        threads = [threading.Thread(target=here.copy().run, args=(probe,)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(passed) == [False] + [True] * 15


@pytest.mark.parametrize("other", [RetryConfig(max_retries=9), RetryConfig(base_delay=0.5)])
def test_given_one_address_when_shared_then_only_the_breakers_own_settings_tell_breakers_apart(
    other: RetryConfig,
) -> None:
    one = shared_breaker("http://shared.test/v1", RetryConfig())
    assert shared_breaker("http://shared.test/v1", other) is one
    assert shared_breaker("http://shared.test/v1", RetryConfig(circuit_open_after=9)) is not one
    assert shared_breaker("http://other.test/v1", RetryConfig()) is not one


def opened() -> CircuitBreaker:
    breaker = CircuitBreaker(CONFIG)
    for _ in range(3):
        breaker.record_failure()
    assert breaker.is_open()
    return breaker
