"""JSON-schema validation with bounds."""

from __future__ import annotations

import json
from itertools import repeat

import pytest

from deepstrike.kernel import validate

CITY = json.dumps(
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"$ref": "#/$defs/days"}},
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"days": {"type": "array", "items": {"type": "integer"}}},
    }
)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def test_given_a_valid_document_when_validated_then_nothing_is_wrong() -> None:
    assert validate(CITY, '{"city":"Rom","days":[1,2]}') == []


def test_given_errors_when_validated_then_each_names_its_place() -> None:
    assert validate(CITY, '{"days":[1,"x"],"z":0}') == [
        '/days/1: "x" is not of type "integer"',
        "(root): Additional properties are not allowed ('z' was unexpected)",
        '(root): "city" is a required property',
    ]


def test_given_text_that_is_no_json_when_validated_then_that_is_the_error() -> None:
    assert validate(CITY, '{"city":') == ["(root): not JSON: EOF while parsing a value at line 1 column 8"]
    assert validate(CITY, "NaN")[0].startswith("(root): not JSON: ")
    assert validate(CITY, "[" * 10_000)[0].startswith("(root): not JSON: recursion limit exceeded")


def test_given_many_and_long_errors_when_validated_then_the_list_is_bounded() -> None:
    errors = validate('{"items":{"type":"integer"}}', json.dumps(["x" * 10_000] * 1000))

    assert len(errors) == 16
    assert {len(error) for error in errors} == {401}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("", "not JSON"),
        ('{"type":3}', "3"),
        ('{"type":"strin"}', "strin"),
        ('{"pattern":"("}', "regex"),
        ('{"pattern":"(a{1000}){1000}"}', "regex"),
        ('{"$ref":"http://127.0.0.1:1/x.json"}', "127.0.0.1"),
        ('{"$ref":"file:///etc/passwd"}', "passwd"),
        ('{"$ref":"#/$defs/none"}', "none"),
        ('{"$ref":"#"}', "circle"),
        ('{"allOf":[{"$ref":"#"}]}', "circle"),
        ("[" * 10_000, "recursion limit"),
        (json.dumps({"description": "x" * (1 << 20)}), "longer than"),
    ],
)
def test_given_a_schema_that_cannot_be_used_when_validated_then_the_error_says_why(schema: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"schema: .*{why}"):
        validate(schema, "{}")


def test_given_references_that_double_the_work_thirty_times_when_validated_then_it_is_refused() -> None:
    both = {f"a{n}": {"anyOf": list(repeat({"$ref": f"#/$defs/a{n + 1}"}, 2))} for n in range(30)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**both, "a30": {"type": "string"}}}

    with pytest.raises(ValueError, match="too many steps"):
        validate(json.dumps(schema), "1")


def test_given_a_schema_that_doubles_with_every_level_when_validated_then_deep_documents_are_refused() -> None:
    schema = '{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}'

    assert validate(schema, "{}") == []
    with pytest.raises(ValueError, match="too many steps"):
        validate(schema, nested(100))


def test_given_a_recursive_schema_when_a_deep_document_is_validated_then_it_passes() -> None:
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "a": {"$ref": "#/$defs/n~1m"}},
        "$defs": {"n/m": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}},
    }

    assert validate(json.dumps(tree), nested(100)) == []


def test_given_a_pattern_with_nested_repeats_when_it_does_not_match_then_the_answer_comes_at_once() -> None:
    subject = json.dumps("a" * 5000 + "b")

    assert len(validate('{"pattern":"^(a+)+$"}', subject)) == 1
    assert len(validate(r'{"pattern":"^(?=a)((a|aa)+)\\1$"}', subject)) == 1


def test_given_anchors_and_embedded_ids_when_validated_then_references_find_them() -> None:
    schema = '{"$ref":"#here","$defs":{"x":{"$anchor":"here","type":"integer"}}}'

    assert validate(schema, "1") == []
    assert validate(schema, '"1"') == ['(root): "1" is not of type "integer"']


def test_given_many_patterns_that_are_large_together_when_validated_then_the_schema_is_refused() -> None:
    patterns = {f"p{n}": {"pattern": rf"(?=a)(\w{{6}}){n}"} for n in range(400)}

    with pytest.raises(ValueError, match="or takes over"):
        validate(json.dumps({"properties": patterns}), "{}")
    assert validate(json.dumps({"properties": dict(list(patterns.items())[:20])}), "{}") == []
