"""Wrong values are told where they are given, with the name of the field and never a secret."""

from __future__ import annotations

import math
from typing import Any

import pytest

from deepstrike.errors import ConfigError
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.base import Timeouts
from deepstrike.providers.transport.breaker import CircuitBreaker

KEY = "sk-test-0123456789abcdef"
HUGE = 10**5000


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("api_key", [5, KEY.encode(), f"{KEY}\n{KEY}"]),
        ("model", [None, 5, "", "\ud800", "a\nb"]),
        ("base_url", [5, b"http://h", "h", "ftp://h", "http://", "http://a b", "http://h/a b", "http://h/\0"]),
        ("base_url", ["http://h/\ud800", "http://\ud800/", "http://h\nx/", "http://a..b/", f"http://{'a' * 64}/"]),
        ("base_url", ["http://h:0", "http://h:99999", "http://[::1", "http://é..b/"]),
        ("retry_config", [5, 0, RetryConfig]),
        ("timeouts", [5, 0, Timeouts]),
        ("circuit_breaker", [5, CircuitBreaker]),
        ("headers", [5, KEY, [("authorization", KEY)], {"a": 5}, {5: "a"}, {"a b": KEY}, {"a": f"{KEY}\n"}]),
        ("max_concurrency", [0, "1", 1.5, True, math.nan, HUGE, -HUGE]),
    ],
)
def test_given_a_wrong_value_when_a_provider_is_made_then_the_error_names_the_field(
    field: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(ConfigError) as caught:
            OpenAIProvider(**{"api_key": KEY, field: value})
        said = str(caught.value)
        assert field in said.replace("API key", "api_key"), said
        assert KEY not in said
        assert len(said) < 250


@pytest.mark.parametrize(
    "base_url",
    [
        "http://h",
        "http://127.0.0.1:1/v1",
        "http://[::1]:8080/v1",
        "https://exämple.com/é",
        "http://h./v1?api-version=1",
    ],
)
def test_given_an_unusual_address_when_a_provider_is_made_then_it_is_taken(base_url: str) -> None:
    assert repr(OpenAIProvider(base_url=base_url)) == f"OpenAIProvider(model='gpt-5-mini', base_url={base_url!r})"


def test_given_numbers_of_seconds_when_they_are_out_of_range_then_the_message_tells_the_range() -> None:
    for wrong in (0, 1e10, HUGE, math.inf, math.nan, "1", True):
        with pytest.raises(
            ConfigError, match=r"Timeouts.idle must be a number of seconds above 0, at most 1e9, or None"
        ):
            Timeouts(idle=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"max_retries must be a whole number from 0 to 2\*\*53 - 1, not this int$"):
        RetryConfig(max_retries=HUGE)
