"""Checking a call's arguments: what may be coerced is, the rest is refused in words the model can act on."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from deepstrike.text import well_formed
from deepstrike.tools.documents import Unreadable, read_document, without_lone_surrogates, write_document
from deepstrike.wire.message import Err, Ok

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepstrike.tools.documents import Json
    from deepstrike.wire.message import Validated

    Document = dict[str, Json]

INVALID: Final = "invalid_arguments"
MAX_COMPLAINTS: Final = 5
UNCHANGED: Final = Ok()
_NO_ARGUMENTS: Final = frozenset({"", "null"})
_SUSPECT: Final = re.compile(r"\\u[dD][89a-fA-F]|[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BREAK: Final = re.compile(r"[\n\r\t]")
_KINDS: Final = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "a boolean"}


class InvalidArguments(ValueError):
    """The arguments do not fit; the message is for the model."""


class Arguments(Protocol):
    """Checks the arguments of one tool."""

    @property
    def schema(self) -> str:
        """JSON schema text for the model."""

    def check(self, text: str) -> Validated:
        """Validate and coerce. Never raises."""

    def values(self, text: str) -> dict[str, object]:
        """Validated text → what the function gets, by name. Raises `InvalidArguments`."""


@dataclass(frozen=True, slots=True)
class Read:
    """The model's text as an object; `text` is it as JSON that every reader reads alike."""

    document: Document
    text: str


def read_arguments(text: str) -> Read:
    """Read the model's argument text. An empty text and `null` mean no arguments; an object inside a JSON string is
    unpacked; lone surrogates are replaced. Raises `InvalidArguments`.
    """
    clean = well_formed(text)
    if clean.strip() in _NO_ARGUMENTS:
        return Read({}, "{}")
    try:
        document = read_document(clean)
        if isinstance(document, str):
            clean = document
            document = read_document(clean)
    except Unreadable as error:
        raise InvalidArguments(f"the arguments are unreadable: {error}") from error
    if not isinstance(document, dict):
        raise InvalidArguments(f"the arguments must be a JSON object, not {_KINDS.get(type(document), 'null')}")
    if needs_rewriting(clean):
        document = {well_formed(key): without_lone_surrogates(value) for key, value in document.items()}
        clean = write_document(document)
    return Read(document, clean)


def needs_rewriting(text: str) -> bool:
    """True if strict readers may refuse the text: raw control characters in a string, or half a surrogate pair."""
    return _SUSPECT.search(text) is not None or (_BREAK.search(text) is not None and not _is_strict(text))


def _is_strict(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:  # a line break inside a string; between tokens it is plain white space
        return False
    return True


@dataclass(frozen=True, slots=True)
class SchemaArguments:
    """Arguments of a tool with explicit `parameters`: judged by `validate(schema, document) -> complaints`.

    Values reach the function as JSON decodes them, but for `1.0` and the like where the schema says integer, which
    become integers. Strings are converted only where the schema refuses them and asks for another type (`"3"` for an
    integer, `"[1]"` for an array).
    """

    schema: str
    validate: Callable[[str, str], Sequence[str]]
    wanted: Mapping[str, str]
    """Top-level property → its `type` in the schema."""

    def check(self, text: str) -> Validated:
        try:
            read = read_arguments(text)
            complaints = self.validate(self.schema, read.text)
            if complaints:
                read = self._coerced(read.document)
                complaints = self.validate(self.schema, read.text)
            read = self._with_integers(read)
        except InvalidArguments as refused:
            return Err(INVALID, str(refused))
        except Exception as error:
            return Err(INVALID, well_formed(f"the arguments cannot be checked: {error}"))
        if complaints:
            return Err(INVALID, listed(complaints))
        return UNCHANGED if read.text == text else Ok(read.text)

    def values(self, text: str) -> dict[str, object]:
        return dict(read_arguments(text).document)

    def _with_integers(self, read: Read) -> Read:
        """To JSON schema `1.0` is an integer, to Python it is none."""
        whole = {
            name: int(value)
            for name, value in read.document.items()
            if isinstance(value, float) and value.is_integer() and self.wanted.get(name) == "integer"
        }
        if not whole:
            return read
        changed = {**read.document, **whole}
        return Read(changed, write_document(changed))

    def _coerced(self, document: Document) -> Read:
        changed = {name: _as_type(value, self.wanted.get(name, "")) for name, value in document.items()}
        return Read(changed, write_document(changed))


def _as_type(value: Json, wanted: str) -> Json:
    if not isinstance(value, str) or wanted not in _FROM_TEXT:
        return value
    try:
        read = read_document(value.strip().lower() if wanted == "boolean" else value)
    except Unreadable:
        return value
    return read if type(read) in _FROM_TEXT[wanted] else value


_FROM_TEXT: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def listed(complaints: Sequence[str]) -> str:
    """The first few complaints in one line, and how many more there are."""
    shown = "; ".join(complaints[:MAX_COMPLAINTS])
    more = len(complaints) - MAX_COMPLAINTS
    return well_formed(f"{shown}; and {more} more" if more > 0 else shown)
