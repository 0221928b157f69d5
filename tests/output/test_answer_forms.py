"""An `output_type` becomes a form: a schema for the model, and a judgement of what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ForwardRef, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from deepstrike import ConfigError
from deepstrike.output.form import form_of
from deepstrike.output.shape import Misfit
from deepstrike.wire.message import Err, Ok


class Line(BaseModel):
    what: str
    count: int = 1


class Invoice(BaseModel):
    """An invoice."""

    number: str = Field(description="as printed")
    lines: list[Line]
    note: str | None = None


class Node(BaseModel):
    value: int
    next: Node | None = None


class Picky(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def fits(cls, word: str) -> str:
        if word == "crash":
            raise KeyError(word)
        if word != "please":
            raise ValueError("say please")
        return word


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    name: str


SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "title": "The sum!"}
LIST = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}


def objection(output_type: object, text: str) -> str:
    """What the model is told of `text`."""
    found = form_of(output_type).check(text)
    assert isinstance(found, Err)
    assert found.kind == "invalid_output"
    return found.message


def test_given_a_model_when_its_form_is_made_then_the_schema_has_its_names_in_order_and_no_titles_of_fields() -> None:
    form = form_of(Invoice)
    schema = json.loads(form.schema)
    assert form.name == "Invoice"
    assert list(schema["properties"]) == ["number", "lines", "note"]
    assert schema["properties"]["number"] == {"type": "string", "description": "as printed"}
    assert (schema["type"], schema["required"]) == ("object", ["number", "lines"])


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (Invoice, '{"number":"7","lines":[{"what":"tea"}]}', Invoice(number="7", lines=[Line(what="tea")])),
        (Node, '{"value":1,"next":{"value":2}}', Node(value=1, next=Node(value=2))),
        (Point, '{"x":3}', Point(3)),
        (Row, '{"name":"n"}', {"name": "n"}),
        (dict[str, int], '{"a":1}', {"a": 1}),
        (SUM, '{"sum":45,"more":[1]}', {"sum": 45, "more": [1]}),
        ({"properties": {"a": {"type": "string"}}}, '{"a":"b"}', {"a": "b"}),
    ],
)
def test_given_an_answer_that_fits_when_read_then_it_is_a_value_of_the_type(
    output_type: object, text: str, value: object
) -> None:
    form = form_of(output_type)
    assert json.loads(form.schema)["type"] == "object"
    assert (form.check(text), form.value(text)) == (Ok(), value)


@pytest.mark.parametrize(
    ("output_type", "bare", "value"),
    [
        (list[int], "[1,2]", [1, 2]),
        (int, "45", 45),
        (Literal["yes", "no"], '"yes"', "yes"),
        (Colour, '"red"', Colour.RED),
        (Line | Point, '{"x":1}', Point(1)),
        (LIST, "[1,2]", [1, 2]),
        ({"enum": ["a"]}, '"a"', "a"),
        ({}, "null", None),
    ],
)
def test_given_a_type_that_is_no_object_when_its_form_is_made_then_the_answer_is_taken_alone_and_as_a_member(
    output_type: object, bare: str, value: object
) -> None:
    form = form_of(output_type)
    schema = json.loads(form.schema)
    assert (form.name, schema["type"], list(schema["properties"])) == ("answer", "object", ["value"])
    for text in (bare, f'{{"value":{bare}}}'):
        assert (form.check(text), form.value(text)) == (Ok(), value)


def test_given_a_word_alone_when_a_word_is_the_answer_then_it_need_not_be_json() -> None:
    form = form_of(Literal["yes", "no"])
    assert (form.check(" yes\n"), form.value(" yes\n")) == (Ok('"yes"'), "yes")
    assert form_of(str).value("any {text} at all") == "any {text} at all"


def test_given_references_when_a_schema_becomes_a_member_then_they_still_lead_where_they_led() -> None:
    tree = {"type": "array", "items": {"$ref": "#"}, "examples": [{"$ref": "#"}]}
    form = form_of(tree)
    assert form.value('{"value":[[],[[]]]}') == [[], [[]]]
    assert isinstance(form.check('{"value":[1]}'), Err)
    assert json.loads(form.schema)["properties"]["value"]["examples"] == [{"$ref": "#"}]
    assert json.loads(form_of(LIST).schema)["$defs"] == {"n": {"type": "integer"}}


def test_given_words_around_the_answer_when_checked_then_the_json_in_it_is_the_answer() -> None:
    text = 'First I had {"sum": "x"}.\n```json\n{"sum": 45}\n```\nThat is {all}.'
    assert form_of(SUM).check(text) == Ok('{"sum": 45}')
    assert form_of(SUM).value(text) == {"sum": 45}


def test_given_nulls_for_what_is_optional_when_checked_then_they_are_taken_back() -> None:
    text = '{"number":"7","lines":[{"what":"tea","count":null}],"note":null}'
    lean = '{"number":"7","lines":[{"what":"tea"}],"note":null}'
    assert form_of(Invoice).check(text) == Ok(lean)
    assert form_of(Invoice).value(text) == Invoice(number="7", lines=[Line(what="tea")])


def test_given_a_null_for_what_is_required_when_checked_then_it_is_objected_to() -> None:
    assert objection(SUM, '{"sum":null}') == '/sum: null is not of type "integer"'


@pytest.mark.parametrize(
    ("output_type", "text", "said"),
    [
        (Invoice, "I cannot tell.", "there is no JSON in it"),
        (Invoice, "", "there is no JSON in it"),
        (Invoice, '{"number":"7"', "there is no JSON in it"),
        (Invoice, '{"number":7,"lines":[{}]}', "number: should be a valid string, not 7; lines[0].what: missing, but"),
        (Invoice, "[]", "should be an object, not list"),
        (list[int], '{"value":["x"]}', "[0]: should be a valid integer, unable to parse string as an integer, not 'x'"),
        (Literal["yes", "no"], "maybe", "should be 'yes' or 'no', not 'maybe'"),
        (Picky, '{"word":"now"}', "word: say please"),
        (Picky, '{"word":"crash"}', "it cannot be checked: KeyError: 'crash'"),
        (SUM, '{"sum":"x"}', '/sum: "x" is not of type "integer"'),
    ],
)
def test_given_an_answer_that_does_not_fit_when_checked_then_the_objection_says_where_and_why(
    output_type: object, text: str, said: str
) -> None:
    assert objection(output_type, text).startswith(said)
    with pytest.raises(Misfit):
        form_of(output_type).value(text)


def test_given_many_faults_when_checked_then_eight_are_named_and_the_rest_counted() -> None:
    text = json.dumps(["x"] * 30)
    assert objection(list[int], text).count("should be") == 8
    assert objection(list[int], text).endswith("; and 22 more")
    assert objection({"type": "array", "items": {"type": "integer"}}, text).count("is not of type") == 8


@pytest.mark.parametrize(
    ("output_type", "said"),
    [
        ("Invoice", "'Invoice' is a text, not a type"),
        (Line(what="tea"), "give the class Line itself, not an object of it"),
        (Point(1), "give the class Point itself, not an object of it"),
        (len, "len is a function, not a type"),
        (5, "5 has no JSON form"),
        (Callable[[], int], "has no JSON form"),
        (list[ForwardRef("Missing")], "has no JSON form"),  # type: ignore[misc]
        ({"type": "wrong"}, "so it must be a JSON schema"),
        ({"$ref": "https://example.org/other"}, "so it must be a JSON schema"),
        ({"const": object()}, "so it must be a JSON schema"),
        ({"const": float("nan")}, "so it must be a JSON schema"),
    ],
)
def test_given_what_is_no_form_when_one_is_made_then_the_error_says_so(output_type: object, said: str) -> None:
    with pytest.raises(ConfigError, match="output_type") as refused:
        form_of(output_type)
    assert said in str(refused.value)


def test_given_a_dict_when_its_form_is_made_then_the_dict_is_left_as_it_is_and_later_changes_do_not_count() -> None:
    schema = json.loads(json.dumps(LIST))
    form = form_of(schema)
    assert schema == LIST
    schema["items"] = {"type": "string"}
    assert form.value("[1]") == [1]


@pytest.mark.parametrize(
    ("title", "name"), [("The sum!", "The_sum"), ("Ä", "answer"), ("x" * 99, "x" * 64), (5, "answer")]
)
def test_given_a_title_when_a_form_is_named_by_it_then_services_take_the_name(title: object, name: str) -> None:
    schema: dict[str, object] = {**SUM, "title": title} if isinstance(title, str) else {**SUM, "title": ""}
    assert form_of(schema).name == name


def test_given_an_answer_that_is_still_written_when_read_then_what_is_there_of_it_is_given() -> None:
    assert form_of(Invoice).partial('{"number":"7","lines":[{"wh') == {"number": "7", "lines": [{}]}
    assert form_of(list[int]).partial('{"value":[1,2') == [1]
    assert form_of(list[int]).partial("[1,2,") == [1, 2]
    assert form_of(Invoice).partial("Well,") is None
