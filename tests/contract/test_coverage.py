"""The contract shows every word of the boundary."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING

import msgspec
from contract_files import DECODERS, TYPES, lines

if TYPE_CHECKING:
    from collections.abc import Iterator


def structs(of: object) -> Iterator[type[msgspec.Struct]]:
    """Every struct that a type names, at any depth."""
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        yield of
        for field in msgspec.structs.fields(of):
            yield from structs(field.type)
    for argument in typing.get_args(of):
        yield from structs(argument)


def shown(value: object) -> Iterator[tuple[str, str]]:
    """Every field in a value that does not have its default, as (struct, field); a struct itself as (struct, "")."""
    if isinstance(value, tuple):
        for item in value:
            yield from shown(item)
    if isinstance(value, msgspec.Struct):
        name = type(value).__name__
        yield name, ""
        for field in msgspec.structs.fields(value):
            held = msgspec.structs.asdict(value)[field.name]
            if field.required or held != field.default:
                yield name, field.name
            yield from shown(held)


def test_given_all_wire_structs_when_looked_for_in_the_contract_then_each_and_each_of_its_fields_is_there() -> None:
    declared = {
        (struct.__name__, name)
        for of in TYPES.values()
        for struct in structs(of)
        for name in ("", *(field.name for field in msgspec.structs.fields(struct)))
    }
    found = {pair for name in TYPES for line in lines(name) for pair in shown(DECODERS[name].decode(line))}

    assert declared - found == set()
