"""Content parts made by users, checked before they cross the boundary."""

from __future__ import annotations

import msgspec

from deepstrike.text import well_formed
from deepstrike.wire.message import File, Image, Part, Text


def checked_part(part: object) -> Part:
    """The part with every text in it well formed.

    Raises `TypeError` for what is no part, or a part whose fields are not texts.
    """
    if not isinstance(part, Text | Image | File):
        raise TypeError(f"content is made of Text, Image and File parts; {type(part).__name__} is none of them")
    fields: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(part).items():
        if not isinstance(value, str):
            raise TypeError(f"{type(part).__name__}.{name} must be a text, not {type(value).__name__}")
        fields[name] = well_formed(value)
    return type(part)(**fields)
