"""How durable an acknowledged record is."""

from __future__ import annotations

from typing import Literal, get_args

from deepstrike.errors import ConfigError

Durability = Literal["os", "disk"]
"""`os`: handed to the operating system, so it outlives the process. `disk`: flushed, so it outlives a power cut."""


def flushes(durability: Durability) -> bool:
    """Whether every append is flushed. Raises `ConfigError` for another word."""
    if durability not in get_args(Durability):
        raise ConfigError(f'durability={durability!r}: it is "os" or "disk"')
    return durability == "disk"
