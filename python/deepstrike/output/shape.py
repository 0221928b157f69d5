"""What every kind of `output_type` comes to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepstrike.tools.documents import Json

VALUE: Final = "value"
"""The member that holds an answer which is no object itself."""


class Misfit(ValueError):
    """A document does not have the form; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A form before it is given to anybody: its name, its schema with an object at the root, and its reader.

    With `wrapped` the object holds the answer as `value`. `read` turns a JSON document, with or without that member,
    into what the user gets, and raises `Misfit`.
    """

    name: str
    schema: Mapping[str, Json]
    wrapped: bool
    read: Callable[[str], object]


def wrapped(schema: Mapping[str, Json], whole: Callable[[str], object], bare: Callable[[str], object]) -> Shape:
    """The shape of an answer that is no object, by the reader of the object around it and the reader of itself."""

    def read(document: str) -> object:
        if not _has_value(document):
            return bare(document)
        try:
            return whole(document)
        except Misfit as misfit:
            try:
                return bare(document)
            except Misfit:
                raise misfit from None

    return Shape("answer", schema, True, read)


def _has_value(document: str) -> bool:
    found = json.loads(document)
    return isinstance(found, dict) and VALUE in found
