"""The form that a judge's answer has, read with as much patience as models need, and no more.

Importing this module imports pydantic.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator

from deepstrike.harness.verdict import CriterionVerdict, Verdict
from deepstrike.output.form import NO_JSON, form_of
from deepstrike.output.shape import Misfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.harness.request import Criterion

_TRUE: Final = ("true", "yes", "1")
_SAID: Final = frozenset({"passed", "feedback", "score", "criteria"})


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
        "", description="its number in the list of criteria"
    )
    passed: Truth = Field(False, description="whether the answer meets it")
    reason: Words = Field("", description="one sentence")


class Draft(BaseModel):
    """A skill that the judge proposes."""

    name: Words = Field("", description="lowercase words with hyphens between them")
    description: Words = Field("", description="one sentence: what it is for")
    when_to_use: Words = Field("", description="one sentence: when to read it")
    body: Words = Field("", description="the instructions, in Markdown")


def _drafted(value: object) -> object | None:
    """A draft that is none does not make the verdict unreadable."""
    try:
        return Draft.model_validate(value)
    except ValidationError:
        return None


class Judgement(BaseModel):
    """The verdict on one answer."""

    passed: Truth = Field(False, description="whether the answer as a whole is good enough")
    feedback: Words = Field("", description="what to change, for whoever tries again; short and concrete")
    score: Annotated[float | None, BeforeValidator(_share)] = Field(None, description="from 0 to 1")
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


FORM: Final = form_of(TeachingJudgement)
"""Reads the text of either."""


def read_judgement(text: str, criteria: Sequence[Criterion]) -> tuple[Verdict, Draft | None]:
    """The verdict in a judge's answer, and the skill it proposes. Raises `Misfit` for a text without a verdict."""
    found = FORM.value(text)
    if not isinstance(found, TeachingJudgement):
        raise Misfit(NO_JSON)
    rulings = _named(found.criteria, criteria)
    feedback = found.feedback.strip()
    if not found.passed and not feedback and all(each.passed for each in rulings):
        feedback = "The judge did not pass it and did not say why."
    return Verdict(found.passed, feedback, found.score, rulings), found.skill


def _named(rulings: Sequence[Ruling], criteria: Sequence[Criterion]) -> tuple[CriterionVerdict, ...]:
    """The rulings by the texts of their criteria; one that fits none is left out, of two on one the stricter counts."""
    known = {str(number): each.text for number, each in enumerate(criteria, 1)}
    known |= {_plain(each.text): each.text for each in criteria}
    found: dict[str, CriterionVerdict] = {}
    for ruling in rulings:
        text = known.get(_plain(ruling.criterion))
        if text is not None and (text not in found or not ruling.passed):
            found[text] = CriterionVerdict(text, ruling.passed, ruling.reason.strip())
    return tuple(found[each.text] for each in criteria if each.text in found)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
