"""What sets one vendor of a dialect apart from another, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.extensions import Field


@dataclass(frozen=True, slots=True)
class Profile:
    """A vendor of the chat completions dialect.

    `base_url` is the address used when none is given, `key_variable` and `url_variable` name the environment variables
    for key and address. `fields` are the extensions it takes. `limit_field` is its name for the output limit and
    `reasoning_limit_field` the one that reasoning models want. `reasoning_in_output` says whether its output count
    includes the reasoning.
    """

    name: str
    base_url: str
    key_variable: str
    url_variable: str
    fields: Mapping[str, Field]
    limit_field: str = "max_tokens"
    reasoning_limit_field: str = "max_completion_tokens"
    reasoning_in_output: bool = True
