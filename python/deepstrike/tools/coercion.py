"""Arguments checked against a function's signature, by pydantic's compiled validator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import ValidationError

from deepstrike.text import well_formed
from deepstrike.tools.arguments import INVALID, UNCHANGED, InvalidArguments, Read, listed, read_arguments
from deepstrike.tools.documents import Unreadable, read_document, write_document
from deepstrike.wire.message import Err, Ok

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from deepstrike.tools.documents import Json
    from deepstrike.tools.schema import Compiled
    from deepstrike.wire.message import Validated

_UNPACKING_ROUNDS: Final = 4
_SHOWN_VALUE: Final = 60
_LOOSE_COLON: Final = re.compile(r"\s:")


class SignatureArguments:
    """Strict first, so that an exact match is never reinterpreted; lax second (`"3"` → 3, `"false"` → False).

    A boolean never becomes something else: who sends true for a number has mistaken the parameter.
    A string where a container is due is parsed as JSON. The validated text shows the values that the function gets,
    with the defaults of what was left out (but for None) and every name as the schema has it, so that whoever judges or
    approves a call sees all of it. Where a type's JSON form does not give the same value back (secrets), it is the
    model's own text.
    """

    __slots__ = ("_compiled", "_flat", "_unfit", "_validate", "schema")

    def __init__(self, compiled: Compiled) -> None:
        self.schema = compiled.text
        self._compiled = compiled
        self._flat = compiled.flat
        # Parameters whose default has no JSON form that gives it back.
        self._unfit: set[str] = set()
        self._validate = compiled.validator.validate_json

    def check(self, text: str) -> Validated:
        if self._flat:
            try:
                values = self._validate(text, strict=True)
                if _each_key_once(text, len(values)) and not _may_mistake(text, values) and not self._left_out(values):
                    return UNCHANGED
            except ValueError:
                pass  # the thorough way finds out what is wrong, or what to coerce
        try:
            read = read_arguments(text)
            validated = self._unpacked(read, _UNPACKING_ROUNDS)
        except InvalidArguments as refused:
            return Err(INVALID, str(refused))
        except Exception as error:  # a validator of the user's own
            return Err(INVALID, well_formed(f"the arguments cannot be checked: {type(error).__name__}: {error}"))
        return UNCHANGED if validated == text else Ok(validated)

    def values(self, text: str) -> dict[str, object]:
        values: dict[str, object]
        try:
            values = self._validate(text, strict=True)
        except ValidationError:
            try:
                values = self._validate(text)
            except ValidationError as error:
                raise InvalidArguments(_complaint(_errors(error), {})) from error
        for name, make in self._compiled.fill.items():
            if name not in values:
                values[name] = make()
        return values

    def _left_out(self, values: Mapping[str, object]) -> list[str]:
        defaults = self._compiled.defaults
        return [name for name in defaults if name not in values and name not in self._unfit]

    def _unpacked(self, read: Read, rounds: int) -> str:
        try:
            return self._completed(self._coerced(read), read)
        except ValidationError as error:
            refused = error
        found = _errors(refused)
        if not rounds or not _unpack(read.document, found):
            raise InvalidArguments(_complaint(found, read.document)) from refused
        return self._unpacked(Read(read.document, write_document(read.document)), rounds - 1)

    def _coerced(self, read: Read) -> dict[str, object]:
        """As `_lenient` does. Raises `InvalidArguments` for a boolean that would become something else."""
        values: dict[str, object]
        refused: list[ErrorDetails] = []
        try:
            values = self._validate(read.text, strict=True)
        except ValidationError as error:
            values = self._validate(read.text)
            refused = [each for each in _errors(error) if isinstance(each["input"], bool)]
        given = list(_booleans(read.document))
        if not given:
            return values
        try:
            made = self._dumped(values)
        except Exception:  # a type without a JSON form, or a serializer of the user's own
            made = {}
        wrong = [each for each in refused if not isinstance(_at(made, _path(each["loc"], read.document)), bool)]
        if wrong:
            raise InvalidArguments(_complaint(wrong, read.document))
        # An enumeration and a literal of numbers take a boolean as exact: in Python it is one of these.
        numbers = [(path, value) for path, value in given if type(_at(made, path)) in (int, float)]
        if numbers:
            places = ((_place(path, read.document, ""), value) for path, value in numbers)
            raise InvalidArguments(listed([f"{place}: should be a number, not {value}" for place, value in places]))
        return values

    def _lenient(self, text: str) -> dict[str, object]:
        values: dict[str, object]
        try:
            values = self._validate(text, strict=True)
        except ValidationError:
            values = self._validate(text)
        return values

    def _completed(self, values: dict[str, object], read: Read) -> str:
        """The values as JSON with the defaults of what was left out, as far as that gives the same values back."""
        given = {name: made for name in self._left_out(values) if (made := self._compiled.defaults[name]()) is not None}
        text = self._as_text({**values, **given}, read)
        if text is not None or not given:
            return read.text if text is None else text
        fitting = dict(values)
        for name, value in given.items():
            if self._as_text({**fitting, name: value}, read) is None:
                self._unfit.add(name)
            else:
                fitting[name] = value
        return self._as_text(fitting, read) or read.text

    def _as_text(self, values: dict[str, object], read: Read) -> str | None:
        """The values as JSON, None if that does not give the same values back."""
        try:
            document = self._document(values, read)
            if document == read.document:
                return read.text
            text = write_document(document)
            return text if self._lenient(text) == values else None
        except Exception:  # a type without a JSON form, or a serializer of the user's own
            return None

    def _document(self, values: dict[str, object], read: Read) -> Json:
        """The values as they are written; what fits as the model wrote it stays so, and only gets what is left out."""
        document = self._dumped(values)
        is_clear = not self._compiled.changing and self._fits(read.text)
        return _merged(document, read.document) if is_clear else _with_nulls(document, read.document)

    def _dumped(self, values: dict[str, object]) -> dict[str, Json]:
        dumped = self._compiled.serializer.to_json(
            values, by_alias=True, exclude_none=True, round_trip=True, warnings=False
        )
        document = read_document(dumped.decode())
        if not isinstance(document, dict):
            raise TypeError("a serializer made no object of the arguments")
        return document

    def _fits(self, text: str) -> bool:
        try:
            self._validate(text, strict=True)
        except ValidationError:
            return False
        return True


def _errors(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False)


def _complaint(errors: Sequence[ErrorDetails], document: Json) -> str:
    found: dict[str, list[str]] = {}
    for each in errors:
        reasons = found.setdefault(_place(each["loc"], document, each["type"]), [])
        reason = _reason(each)
        if reason not in reasons:
            reasons.append(reason)
    return listed([f"{place}: {' or '.join(reasons)}" if place else reasons[0] for place, reasons in found.items()])


def _merged(whole: Json, own: Json) -> Json:
    """`whole`, with the model's own writing of every value that it gave under the same name, and in its order."""
    if isinstance(whole, dict) and isinstance(own, dict):
        whole = _with_nulls(whole, own)
        kept = {name: _merged(whole[name], value) for name, value in own.items() if name in whole}
        return {**kept, **{name: value for name, value in whole.items() if name not in kept}}
    if isinstance(whole, list) and isinstance(own, list) and len(whole) == len(own):
        return [_merged(value, given) for value, given in zip(whole, own, strict=True)]
    return own


def _with_nulls(whole: dict[str, Json], own: dict[str, Json]) -> dict[str, Json]:
    """`whole`, with each null that the model gave."""
    return {**whole, **{name: None for name, value in own.items() if value is None and name not in whole}}


def _each_key_once(text: str, keys: int) -> bool:
    """True if valid JSON, which gave an object with `keys` keys, surely holds no key twice and no nested object.

    Every key is followed by a colon, so with no more colons than keys there is no other key. Colons inside strings do
    not disturb where every key's colon stands right behind its quote.
    """
    return text.count(":") == keys or (text.count('":') == keys and _LOOSE_COLON.search(text) is None)


def _unpack(document: Json, errors: Sequence[ErrorDetails]) -> bool:
    """Replace each refused string that holds a JSON object or array by what it holds; False if there was none."""
    done = False
    for error in errors:
        text = error["input"]
        if not isinstance(text, str) or text.lstrip()[:1] not in ("[", "{"):
            continue
        try:
            content = read_document(text)
        except Unreadable:
            continue
        done = _put(document, error["loc"], text, content) or done
    return done


def _put(document: Json, place: Sequence[int | str], old: str, new: Json) -> bool:
    at: Any = document
    for key in place:
        if not _has(at, key):
            continue  # the name of a union's branch
        if at[key] == old:
            at[key] = new
            return True
        at = at[key]
    return False


def _path(place: Sequence[int | str], document: Json) -> list[int | str]:
    """The place without the names of unions' branches."""
    path: list[int | str] = []
    at: Any = document
    for key in place:
        if _has(at, key):
            path.append(key)
            at = at[key]
    return path


def _may_mistake(text: str, values: Mapping[str, object]) -> bool:
    """Whether a boolean in flat arguments may have become something else."""
    given = text.count("true") + text.count("false")
    return given > 0 and given != sum(isinstance(value, bool) for value in values.values())


def _booleans(document: Json, path: tuple[int | str, ...] = ()) -> Iterator[tuple[tuple[int | str, ...], bool]]:
    if isinstance(document, bool):
        yield path, document
    elif isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from _booleans(value, (*path, key))


def _at(document: Json, path: Sequence[int | str]) -> Json:
    at: Any = document
    for key in path:
        at = at[key] if _has(at, key) else None
    return at  # type: ignore[no-any-return]


def _has(at: Json, key: int | str) -> bool:
    if isinstance(at, dict):
        return isinstance(key, str) and key in at
    return isinstance(at, list) and isinstance(key, int) and key < len(at)


def _place(loc: Sequence[int | str], document: Json, kind: str) -> str:
    """The path of the value that is wrong, without pydantic's names for the branches of a union."""
    path = ""
    at: Any = document
    for number, key in enumerate(loc):
        there = _has(at, key)
        if there or (number == len(loc) - 1 and kind == "missing"):
            path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
            at = at[key] if there else None
    return path or (str(loc[0]) if loc else "")


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "missing, but required"
        case "extra_forbidden":
            return "unexpected, there is no such parameter"
        case "value_error" | "assertion_error":
            return error["msg"].partition(", ")[2]
    said = error["msg"].replace("Input should be", "should be")
    given = error["input"]
    shown = repr(given) if isinstance(given, str | int | float | bool | None) else type(given).__name__
    return f"{said}, not {shown if len(shown) <= _SHOWN_VALUE else shown[:_SHOWN_VALUE] + '…'}"
