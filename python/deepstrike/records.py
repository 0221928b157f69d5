"""Reading a record of the log, also one that a newer version wrote."""

from __future__ import annotations

import typing
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from deepstrike.wire.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

_decode = msgspec.json.Decoder(Record).decode

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def decode_record(line: bytes) -> Record:
    """One record of a log; fields that are not known here are ignored, at any depth.

    Raises `msgspec.DecodeError` for what is no JSON, `msgspec.ValidationError` for what is no record of a known kind.
    """
    try:
        return _decode(line)
    except msgspec.ValidationError:
        # Content is strict everywhere, because inputs and effects are; so what is unknown is taken out first.
        return msgspec.convert(_known(msgspec.json.decode(line), Record), Record)


class _Moment(msgspec.Struct):
    at: int


_moment = msgspec.json.Decoder(_Moment).decode


def moment_of(line: bytes) -> int:
    """When a record was made, in milliseconds since 1970. Raises as `decode_record` does."""
    return _moment(line).at


def _known(value: Json, of: object) -> Json:
    """`value` without the fields that the type does not have."""
    if isinstance(value, list):
        (item_type, *_) = typing.get_args(of) or (object,)
        return [_known(item, item_type) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get("type")
    fields = _fields(of, tag if isinstance(tag, str) else "")
    if fields is None:
        return value
    return {name: _known(member, fields[name]) for name, member in value.items() if name in fields}


@cache
def _fields(of: object, tag: str) -> dict[str, object] | None:
    """Name and type of the fields of that struct in `of` which carries `tag`; None if there is none."""
    for struct in _structs(of):
        if struct.__struct_config__.tag in (None, tag):
            own = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
            return {"type": str, **own} if struct.__struct_config__.tag else own
    return None


def _structs(of: object) -> Iterator[type[msgspec.Struct]]:
    for candidate in typing.get_args(of) or (of,):
        if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
            yield candidate
