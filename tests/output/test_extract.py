"""JSON is found in what models say, with bounded work."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepstrike.output.extract import documents

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(), JSON)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1}', ['{"a":1}']),
        ('\ufeff {"a":1}\n', ['{"a":1}']),
        ("45", ["45"]),
        ("", []),
        ("no", []),
        ("NaN", []),
        ('{"a":NaN}', []),
        ('Here: {"a":1}, or {"a":2}.', ['{"a":2}', '{"a":1}']),
        ("```json\n45\n```", ["45"]),
        ('```\n{"a":1}\n```', ['{"a":1}', '{"a":1}']),
        ('{x} and [1] and {"a":[2]}', ['{"a":[2]}', "[1]"]),
        ('{"a":1', []),
        ('{"a":"two\nlines"}', ['{"a":"two\\nlines"}']),
        ('so {"a":"\\ud800"} it is', ['{"a":"\ufffd"}']),
        ("[" * 5_000, []),
    ],
)
def test_given_an_answer_when_its_documents_are_looked_for_then_the_likeliest_comes_first(
    text: str, found: list[str]
) -> None:
    assert list(documents(text)) == found


def test_given_a_text_full_of_brackets_when_searched_then_the_search_gives_up_and_keeps_the_last_twenty() -> None:
    assert list(documents("{x " * 300 + '{"a":1}')) == []
    assert list(documents("{x " * 199 + '{"a":1}')) == ['{"a":1}']
    assert list(documents("so " + "[1] " * 100 + "[2]")) == ["[2]", *["[1]"] * 19]


@given(JSON)
def test_given_any_json_when_it_is_the_whole_text_then_it_is_the_only_document(value: object) -> None:
    text = json.dumps(value)
    assert [json.loads(found) for found in documents(f" {text}\n")] == [value]


@given(OBJECTS, st.text(alphabet="abc .,:\n"), st.text(alphabet="abc .,:\n"))
def test_given_any_object_when_words_stand_around_it_then_it_is_found(
    value: dict[str, object], before: str, after: str
) -> None:
    text = f"{before}x {json.dumps(value)} {after}"
    assert next(json.loads(found) for found in documents(text)) == value


@given(st.text(alphabet='{}[]":,`\\1a\n'))
def test_given_any_text_when_searched_then_what_is_found_is_json(text: str) -> None:
    for found in documents(text):
        json.loads(found)
