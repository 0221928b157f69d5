"""What sets one model service apart from another, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepstrike.providers.faults import Words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.base import ModelInfo
    from deepstrike.providers.dialects.base import Dialect
    from deepstrike.providers.extensions import Field
    from deepstrike.providers.transport.base import Timeouts


@dataclass(frozen=True, slots=True)
class Profile:
    """A model service.

    `name` is written into every recorded reply, and thinking is only replayed to the service of the same name.
    `base_url` is the address used when none is given; `key_variable` and `url_variable` name the environment variables
    for key and address. `dialect` is the codec of its wire, with the vendor's settings. `fields` are the extensions it
    takes, `models` the rows of the model table by id. The key is sent as `key_header: key_form`, and must be there at
    the service's own address if `key_needed`. `headers` go with every request. `words` are the errors that only this
    service has. `timeouts` are the limits where the user sets none. `hosts` are further hosts of the vendor itself, and
    so is every name below one. With `keyed` a request without a `prompt_cache_key` gets the session's. `lifetimes` says
    which extensions change how long the cache keeps a prompt: their place, and milliseconds by value. With
    `strict_path` tools in strict mode go, at the service's own address, to this path instead of that of `base_url`.
    """

    name: str
    base_url: str
    key_variable: str
    url_variable: str
    dialect: Dialect
    fields: Mapping[str, Field]
    models: Mapping[str, ModelInfo] = field(default_factory=dict)
    key_header: str = "authorization"
    key_form: str = "Bearer {}"
    key_needed: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    words: Words = field(default_factory=Words)
    timeouts: Timeouts | None = None
    hosts: tuple[str, ...] = ()
    keyed: bool = False
    lifetimes: Mapping[tuple[str, ...], Mapping[str, int]] = field(default_factory=dict)
    strict_path: str = ""
