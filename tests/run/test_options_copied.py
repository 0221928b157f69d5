"""Options are shared and changed, never copied in depth or pickled: they hold keys and connections."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import TYPE_CHECKING

import pytest

from deepstrike import ConfigError, OpenAIProvider, RuntimeOptions

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-test-THISISNOTREAL-0123456789abcdef"


@pytest.mark.parametrize("way", [copy.deepcopy, dataclasses.asdict, pickle.dumps])
def test_given_options_when_copied_in_depth_then_the_error_says_what_to_do_and_shows_no_key(
    way: Callable[[RuntimeOptions], object],
) -> None:
    options = RuntimeOptions(provider=OpenAIProvider(api_key=KEY))

    with pytest.raises(ConfigError, match="neither pickled nor copied") as refused:
        way(options)

    assert KEY not in str(refused.value)


def test_given_options_when_copied_flat_then_they_share_what_they_hold() -> None:
    options = RuntimeOptions(provider=OpenAIProvider(api_key=KEY), max_turns=3)

    assert copy.copy(options) == options
    assert dataclasses.replace(options, max_turns=4).provider is options.provider
