"""Schemas are made strict where nothing is lost, and sent loose with a reason where they cannot be."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

import pytest

from deepstrike.output.nulls import without_absent
from deepstrike.providers.base import Memo, OutputSchema
from deepstrike.providers.dialects.strict_form import Json, NotStrict, sent_schema, strict_form
from deepstrike.wire.message import Notice

Schema = dict[str, Json]

LINE: Schema = {
    "type": "object",
    "properties": {"what": {"type": "string", "minLength": 2}, "count": {"type": "integer", "default": 1}},
    "required": ["what"],
}
INVOICE: Schema = {
    "type": "object",
    "$defs": {"Line": LINE},
    "properties": {
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "best": {"$ref": "#/$defs/Line", "description": "the best", "default": None},
        "to": {"type": "object", "properties": {"name": {"type": ["string", "null"]}}},
        "kind": {"oneOf": [{"const": "a"}, {"enum": ["b", 1]}], "discriminator": {"propertyName": "x"}},
    },
    "required": ["lines"],
}


def objects(node: Json) -> Iterator[Schema]:
    """Every object in a schema, wherever it stands."""
    for each in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        yield from objects(each)
    if isinstance(node, dict) and "properties" in node and "type" in node:
        yield node


def test_given_nested_objects_and_optional_properties_when_made_strict_then_all_are_closed_and_complete() -> None:
    before = copy.deepcopy(INVOICE)
    made = strict_form(INVOICE)
    found = list(objects(made))
    assert len(found) == 3
    for each in found:
        properties = each["properties"]
        assert isinstance(properties, dict)
        assert (each["additionalProperties"], each["required"]) == (False, list(properties))
    assert before == INVOICE


def test_given_what_strict_mode_says_otherwise_when_made_strict_then_it_is_said_that_way() -> None:
    null: Json = {"type": "null"}
    line: Json = {
        "type": "object",
        "properties": {
            "what": {"type": "string", "description": '{"minLength": 2}'},
            "count": {"anyOf": [{"type": "integer"}, null]},
        },
        "required": ["what", "count"],
        "additionalProperties": False,
    }
    name: Json = {"name": {"type": ["string", "null"]}}
    to: Json = {"type": "object", "properties": name, "required": ["name"], "additionalProperties": False}
    assert strict_form(INVOICE) == {
        "type": "object",
        "$defs": {"Line": line},
        "properties": {
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
            "best": {"anyOf": [{"$ref": "#/$defs/Line"}, null], "description": "the best"},
            "to": {"anyOf": [to, null]},
            "kind": {
                "anyOf": [
                    {"type": "string", "const": "a"},
                    {"type": ["integer", "string"], "enum": ["b", 1]},
                    null,
                ]
            },
        },
        "required": ["lines", "best", "to", "kind"],
        "additionalProperties": False,
    }


def test_given_a_strict_schema_when_made_strict_then_it_stays_as_it_is() -> None:
    made = strict_form(INVOICE)
    assert strict_form(made) == made


def of(schema: Json) -> Schema:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array", "items": {"type": "string"}}, "it is not an object throughout"),
        (of({"type": "object", "additionalProperties": {"type": "string"}}), "it has an object with free names"),
        (of({"type": "object"}), "it has an object with free names"),
        ({**of({"type": "string"}), "additionalProperties": True}, "it has an object with free names"),
        (of({}), "it has values of any type"),
        (of(True), "it has values of any type"),
        (of({"type": "array", "items": False}), "it has values of any type"),
        (of({"allOf": [{"type": "string"}]}), "it has 'allOf'"),
        (of({"type": "array", "prefixItems": [{"type": "string"}]}), "it has 'prefixItems'"),
        (of({"$ref": "#/properties/x"}), "it refers to '#/properties/x'"),
        (of({"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}), "it has 'anyOf' beside 'oneOf'"),
    ],
)
def test_given_what_strict_mode_cannot_say_when_sent_then_it_goes_as_it_is_with_a_notice(
    schema: Schema, reason: str
) -> None:
    with pytest.raises(NotStrict) as refused:
        strict_form(schema)
    memo, text = Memo(), json.dumps(schema)
    assert sent_schema(OutputSchema("n", text), memo) == (text.encode(), False)
    assert str(refused.value) == reason
    assert memo.notices == [Notice("loose_schema", f"the form of the answer is not sent in strict mode: {reason}")]


def test_given_an_answer_by_the_strict_schema_when_its_nulls_are_taken_back_then_only_those_for_nothing_go() -> None:
    said: Json = {
        "lines": [{"what": "tea", "count": None}, {"what": "ham", "count": 2}],
        "best": {"what": "tea", "count": None},
        "to": {"name": None},
        "kind": None,
        "more": None,
    }
    assert without_absent(said, INVOICE) == {
        "lines": [{"what": "tea"}, {"what": "ham", "count": 2}],
        "best": {"what": "tea"},
        "to": {"name": None},
        "more": None,
    }
    assert without_absent({"lines": None}, INVOICE) == {"lines": None}


def test_given_choices_at_every_depth_when_nulls_are_taken_back_then_the_work_does_not_double_with_each() -> None:
    branch: Schema = {"type": "object", "properties": {"next": {"$ref": "#/$defs/any"}, "x": {"type": "integer"}}}
    root: Schema = {"$ref": "#/$defs/any", "$defs": {"any": {"anyOf": [branch, {**branch}, {**branch}]}}}
    deep: Json = {"x": 1}
    lean: Json = {"x": 1}
    for _ in range(90):
        deep, lean = {"next": deep, "x": None}, {"next": lean}
    assert without_absent(deep, root) == lean


def test_given_a_schema_of_circles_when_nulls_are_taken_back_then_it_ends() -> None:
    circle: Schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}}
    assert without_absent({"x": [None, {"y": None}]}, circle) == {"x": [None, {"y": None}]}
