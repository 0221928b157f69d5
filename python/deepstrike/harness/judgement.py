"""The form that a judge's answer has, read with as much patience as models need, and no more.

Importing this module imports pydantic.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from deepstrike.harness.verdict import CriterionVerdict, Verdict
from deepstrike.output.extract import documents
from deepstrike.output.shape import Misfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.harness.request import Criterion

_TRUE: Final = ("true", "yes", "1")
_SAID: Final = frozenset({"passed", "feedback", "score", "overall_score", "criteria"})
# The first of each is asked for; models without a form of their service's write the others too.
_CRITERION: Final = AliasChoices("criterion", "number", "text", "name")
_MET: Final = AliasChoices("passed", "met")
_SCORE: Final = AliasChoices("score", "overall_score")
_BODY: Final = AliasChoices("body", "content", "instructions")


def _truth(value: object) -> bool:
    """True only for what can mean nothing else; whatever else it is, nobody has said yes."""
    if isinstance(value, str):
        return value.strip().casefold() in _TRUE
    return value is True or (isinstance(value, int) and value == 1)


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _share(value: object) -> float | None:
    """A score from 0 to 1; another scale is not guessed at."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1.0
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def _listed(value: object) -> list[object]:
    """Also `{"criterion": true}`; what is no ruling is left out, and then nothing was said of that criterion."""
    if isinstance(value, dict):
        value = [{"criterion": name, "passed": passed} for name, passed in value.items()]
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


Truth = Annotated[bool, BeforeValidator(_truth)]
Words = Annotated[str, BeforeValidator(_words)]


class Ruling(BaseModel):
    """One criterion: met or not."""

    criterion: Annotated[str, BeforeValidator(_words), WithJsonSchema({"type": "integer"})] = Field(
        "", description="its number in the list of criteria", validation_alias=_CRITERION
    )
    passed: Truth = Field(False, description="whether the answer meets it", validation_alias=_MET)
    reason: Words = Field("", description="one sentence")


class Draft(BaseModel):
    """A skill that the judge proposes."""

    name: Words = Field("", description="lowercase words with hyphens between them")
    description: Words = Field("", description="one sentence: what it is for")
    when_to_use: Words = Field("", description="one sentence: when to read it")
    body: Words = Field("", description="the instructions, in Markdown", validation_alias=_BODY)


def _drafted(value: object) -> object | None:
    """A draft that is none does not make the verdict unreadable."""
    try:
        return Draft.model_validate(value)
    except ValidationError:
        return None


class Judgement(BaseModel):
    """The verdict on one answer."""

    # The form asks for these; an answer that leaves one out is read all the same.
    model_config = ConfigDict(json_schema_extra={"required": ["passed", "feedback"]})

    passed: Truth = Field(False, description="whether the answer as a whole is good enough")
    feedback: Words = Field("", description="what to change, for whoever tries again; short and concrete")
    score: Annotated[float | None, BeforeValidator(_share)] = Field(
        None, description="from 0 to 1", validation_alias=_SCORE
    )
    criteria: Annotated[list[Ruling], BeforeValidator(_listed)] = Field(
        default_factory=list, description="one entry for each criterion"
    )

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if isinstance(value, dict) and not _SAID & value.keys():
            raise ValueError("there is no verdict in it: give passed and feedback")
        return value


class TeachingJudgement(Judgement):
    """The verdict on one answer, and a skill if there is something to learn from it."""

    skill: Annotated[Draft | None, BeforeValidator(_drafted)] = Field(
        None, description="only if the answer passed and shows a way of working that will serve for other goals too"
    )


def read_judgement(text: str, criteria: Sequence[Criterion]) -> tuple[Verdict, Draft | None]:
    """The verdict in a judge's answer, and the skill it proposes. Raises `Misfit` for a text without a verdict.

    Of several verdicts among words the first that did not pass counts: one that a judge quotes from the answer must not
    take the place of its own.
    """
    found = [each for each in map(_judgement, documents(text)) if each is not None]
    if not found:
        raise Misfit("there is no JSON with a verdict in it")
    said = next((each for each in found if not each.passed), found[0])
    return Verdict(said.passed, said.feedback.strip(), said.score, _named(said.criteria, criteria)), said.skill


def _judgement(document: str) -> TeachingJudgement | None:
    try:
        return TeachingJudgement.model_validate_json(document)
    except ValidationError:
        return None


def _named(rulings: Sequence[Ruling], criteria: Sequence[Criterion]) -> tuple[CriterionVerdict, ...]:
    """The rulings by the texts of their criteria; one that fits none is left out, of two on one the stricter counts."""
    known = {str(number): each.text for number, each in enumerate(criteria, 1)}
    known |= {_plain(each.text): each.text for each in criteria}
    found: dict[str, CriterionVerdict] = {}
    for ruling in rulings:
        text = known.get(_plain(ruling.criterion)) or known.get(_numbered(ruling.criterion))
        if text is not None and (text not in found or not ruling.passed):
            found[text] = CriterionVerdict(text, ruling.passed, ruling.reason.strip())
    return tuple(found[each.text] for each in criteria if each.text in found)


def _numbered(text: str) -> str:
    """The number that a criterion is called by, as the list shows it: "2. has a title (required)"."""
    found = re.match(r"\s*(?:criterion\s+)?#?(\d+)(?:[.):]|\s*$)", text, re.IGNORECASE)
    return "" if found is None else found[1]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
