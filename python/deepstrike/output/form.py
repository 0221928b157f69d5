"""The form that an answer must have, made of an `output_type`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.output.extract import documents
from deepstrike.output.nulls import without_absent
from deepstrike.output.shape import VALUE, Misfit
from deepstrike.text import well_formed
from deepstrike.tools.documents import Unreadable, read_document, write_document
from deepstrike.wire.message import Err, Ok

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.output.shape import Shape
    from deepstrike.tools.documents import Json
    from deepstrike.wire.message import Validated

INVALID: Final = "invalid_output"
NO_JSON: Final = "there is no JSON in it"
_SIGNS: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MOST_SIGNS: Final = 64


@dataclass(frozen=True, slots=True)
class Form:
    """What an answer must look like.

    `name` is of letters, digits, `_` and `-`. `schema` is JSON schema text whose root is an object: a type that is none
    stands in it as its one member `value`. An answer is taken with or without that member.
    """

    name: str
    schema: str
    _shape: Shape

    def check(self, text: str) -> Validated:
        """Whether `text` has the form: `Ok` with the JSON in it (None if that is all of it), else `Err` for the model.

        Never raises. What a validator of the user's raises counts as an objection.
        """
        try:
            document, _ = self._read(text)
        except Misfit as misfit:
            return Err(INVALID, well_formed(str(misfit)))
        return Ok() if document == text else Ok(document)

    def value(self, text: str) -> object:
        """What `text` means: an instance of the type, for a JSON schema what JSON decodes to. Raises `Misfit`."""
        return self._read(text)[1]

    def partial(self, text: str) -> object | None:
        """What can be read of an answer that is still being written, as JSON decodes to, not validated."""
        from deepstrike.output.partial import partial_json

        found = partial_json(text)
        return found.get(VALUE) if self._shape.wrapped and isinstance(found, dict) else found

    def _read(self, text: str) -> tuple[str, object]:
        """The first document in `text` that fits, and its value. Else raises what is wrong with the likeliest one."""
        likeliest: Misfit | None = None
        for document in self._candidates(text):
            found = self._fitted(document)
            if not isinstance(found, Misfit):
                return found
            likeliest = likeliest or found
        raise likeliest or Misfit(NO_JSON)

    def _fitted(self, document: str) -> tuple[str, object] | Misfit:
        try:
            return document, self._shape.read(document)
        except Misfit as misfit:
            return misfit

    def _candidates(self, text: str) -> Iterator[str]:
        for document in documents(text):
            yield document
            if (leaner := self._leaner(document)) is not None:
                yield leaner
        if self._shape.wrapped:
            yield json.dumps(text.strip(), ensure_ascii=False)  # a word alone, where a word is the answer

    def _leaner(self, document: str) -> str | None:
        """The document without its nulls that stand for what was left out; None if that is the same."""
        try:
            read: Json = read_document(document)
        except Unreadable:
            return None
        lean = without_absent(read, self._shape.schema)
        return None if lean == read else write_document(lean)


def form_of(output_type: object) -> Form:
    """The form of a pydantic model, a dataclass, any other type that pydantic knows, or a JSON schema (a dict).

    Raises `ConfigError` for what is none of these, or has no JSON form.
    """
    if isinstance(output_type, Mapping):
        from deepstrike.output.schemas import shape_of_schema

        shape = shape_of_schema(output_type)
    else:
        from deepstrike.output.types import shape_of_type

        shape = shape_of_type(output_type)
    name = _SIGNS.sub("_", shape.name).strip("_")[:_MOST_SIGNS] or "answer"
    try:
        text = json.dumps(shape.schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"output_type: its JSON schema cannot be written as JSON: {error}") from error
    return Form(name, text, shape)
