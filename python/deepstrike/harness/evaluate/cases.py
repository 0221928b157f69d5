"""The cases of a data set: goals, and what says that an answer is right."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from deepstrike.errors import ConfigError
from deepstrike.harness.request import Criterion, HarnessRequest
from deepstrike.harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_ID = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A goal, and what says that its answer is right.

    `contains` is a text, or several, that must stand in the answer, `equals` is the whole answer; both without regard
    to case and to how much white space there is. `criteria` are for a judge, as in a `HarnessRequest`. `id` names the
    case among the others and in the log. Raises `ConfigError`.
    """

    id: str
    goal: str
    contains: str | Sequence[str] = ()
    equals: str | None = None
    criteria: tuple[str | Criterion, ...] = ()
    extensions: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip() or len(self.id) > _MOST_ID:
            raise ConfigError(f"the id of a case must be a text of 1 to {_MOST_ID} characters, not {self.id!r:.80}")
        if not isinstance(self.goal, str) or not self.goal.strip():
            raise ConfigError(f"case {self.id!r}: the goal must be a text that is not empty")
        if not isinstance(self.contains, Sequence) or not all(isinstance(text, str) and text for text in self.texts):
            raise ConfigError(f"case {self.id!r}: contains must be a text, or a list of texts, that is not empty")
        if self.equals is not None and not isinstance(self.equals, str):
            raise ConfigError(f"case {self.id!r}: equals must be a text")
        self.request()

    @property
    def checks_itself(self) -> bool:
        """Whether the case says what the answer must be, so that nobody need judge it."""
        return bool(self.texts) or self.equals is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """What must stand in the answer."""
        return (self.contains,) if isinstance(self.contains, str) else tuple(self.contains)

    @property
    def digest(self) -> str:
        """Eight characters of what is asked for: another goal is another case, also under the same id."""
        criteria = [(each.text, each.required, each.weight) for each in self.request().all_criteria]
        what = json.dumps([self.goal, criteria, self.extensions], sort_keys=True, default=repr)
        return hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:8]

    def request(self) -> HarnessRequest:
        """The goal for a harness."""
        return HarnessRequest(self.goal, self.criteria, self.extensions)

    def check(self, answer: str) -> Verdict:
        """What the case itself says of an answer; it passes one of which it says nothing."""
        said = _plain(answer)
        missing = [text for text in self.texts if _plain(text) not in said]
        if missing:
            return Verdict(False, f"the answer does not contain {missing[0]!r}")
        if self.equals is not None and said != _plain(self.equals):
            return Verdict(False, f"the answer is not {self.equals!r}")
        return Verdict(True)


class _Criterion(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    required: bool = True
    weight: float = 1.0


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file of cases."""

    goal: str
    id: str | int | None = None
    contains: str | list[str] = []
    equals: str | None = None
    criteria: list[str | _Criterion] = []
    extensions: dict[str, object] = {}


_decode = msgspec.json.Decoder(_Line).decode


def read_cases(path: str | os.PathLike[str]) -> list[Case]:
    """The cases of a JSON Lines file: `goal`, and of the other fields of `Case` those that it needs.

    `contains` may be one text, a criterion a text or an object of `text`, `required` and `weight`. A line without `id`
    is named by its number. Empty lines are passed over. Raises `ConfigError` that names file and line.
    """
    place = Path(path).expanduser()
    try:
        lines = place.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    found = [_case(line, f"{path}:{number}", number) for number, line in enumerate(lines, 1) if line.strip()]
    return _distinct(found, str(path))


def cases_of(cases: str | os.PathLike[str] | Iterable[Case]) -> list[Case]:
    """The cases of a file, or these. Raises `ConfigError`."""
    if isinstance(cases, str | os.PathLike):
        return read_cases(cases)
    if not isinstance(cases, Iterable):
        raise ConfigError(f"cases must be a file or a list of Case(…), not {type(cases).__name__}")
    found = list(cases)
    for case in found:
        if not isinstance(case, Case):
            raise ConfigError(f"cases must be Case(…), not {type(case).__name__}")
    return _distinct(found, "the list of cases")


def _case(line: bytes, place: str, number: int) -> Case:
    try:
        read = _decode(line)
        return Case(
            str(number) if read.id is None else str(read.id),
            read.goal,
            (read.contains,) if isinstance(read.contains, str) else tuple(read.contains),
            read.equals,
            tuple(_criteria(read.criteria)),
            read.extensions,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        fields = ", ".join(_Line.__struct_fields__)
        raise ConfigError(f"{place}: {error}; a line is a JSON object, its fields are {fields}") from error
    except ConfigError as error:
        raise ConfigError(f"{place}: {error.message}") from error


def _criteria(given: Iterable[str | _Criterion]) -> Iterator[str | Criterion]:
    for each in given:
        yield each if isinstance(each, str) else Criterion(each.text, each.required, each.weight)


def _distinct(cases: list[Case], where: str) -> list[Case]:
    if not cases:
        raise ConfigError(f"{where} has no case in it")
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise ConfigError(f"{where}: two cases have the id {case.id!r}")
        seen.add(case.id)
    return cases


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
