"""JSON that is still being written is read as far as it goes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepstrike.output.partial import partial_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("Let me see", None),
        ("{", {}),
        ('{"a"', {}),
        ('{"a": "he', {"a": "he"}),
        ('{"a": "x 12', {"a": "x 12"}),
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": 12.5e', {}),
        ('{"a": tru', {}),
        ('{"a": true', {"a": True}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('{"a":1}', {"a": 1}),
        ('{"a":1} and then', {"a": 1}),
        ('```json\n{"a": "x', {"a": "x"}),
        ('{x} {"a": "y', {"a": "y"}),
        ('First [1], then {"a": "y', {"a": "y"}),
        ('{"a": NaN', None),
        ("{x " * 300 + '{"a": 1}', None),
        ("[" * 5_000, None),
    ],
)
def test_given_a_text_when_read_in_part_then_what_is_there_is_there(text: str, found: object) -> None:
    assert partial_json(text) == found


def is_part(part: object, whole: object) -> bool:
    """Whether `part` is a beginning of `whole`, at every depth."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_part, part, whole))
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and is_part(value, whole[name]) for name, value in part.items())
    return part == whole


@given(OBJECTS, st.data())
def test_given_any_object_when_cut_anywhere_then_what_is_read_is_a_beginning_of_it(
    value: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cut = data.draw(st.integers(1, len(text)))
    assert is_part(partial_json(text[:cut]), value)


@given(OBJECTS)
def test_given_any_object_when_it_is_whole_then_it_is_read_whole(value: dict[str, object]) -> None:
    assert partial_json("So: " + json.dumps(value)) == value


@given(st.text(alphabet='{}[]":,`\\1a\n'))
def test_given_any_text_when_read_in_part_then_nothing_is_raised(text: str) -> None:
    assert isinstance(partial_json(text), dict | list | None)
