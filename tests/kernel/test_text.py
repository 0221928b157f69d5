"""Text is made fit for the border."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native import start

from deepstrike.kernel import Kernel, encode_input
from deepstrike.text import distinct, well_formed
from deepstrike.wire.message import UserBlock


@pytest.mark.parametrize(
    ("given_text", "right"),
    [
        ("", ""),
        ("plain", "plain"),
        ("naïve 中 🛡", "naïve 中 🛡"),
        ("ok \ud83d end", "ok \ufffd end"),
        ("caf\udce9", "caf\ufffd"),
        ("\ud83d", "\ufffd"),
        ("\ud83d\ude00!", "😀!"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\x00\u2028\uffff", "\x00\u2028\uffff"),
    ],
)
def test_given_surrogates_when_text_is_made_well_formed_then_pairs_join_and_lone_ones_are_replaced(
    given_text: str, right: str
) -> None:
    assert well_formed(given_text) == right


def test_given_good_text_when_made_well_formed_then_it_is_the_same_object() -> None:
    text = "中" * 10

    assert well_formed(text) is text


def test_given_texts_with_lone_surrogates_when_made_distinct_then_each_has_a_form_of_its_own() -> None:
    given_texts = ["\ufffd", "\ud800", "\udfff", "\ud83d\ude00", "😀", "plain"]

    forms = [distinct(text) for text in given_texts]

    assert len(set(forms)) == len(forms)
    assert [form for form, text in zip(forms, given_texts, strict=True) if form == text] == ["\ufffd", "😀", "plain"]
    assert [well_formed(form) for form in forms] == forms


@given(st.text(st.characters(categories=("L", "Cs", "Zs", "So"))))
def test_given_any_text_when_made_well_formed_then_it_crosses_and_comes_back(text: str) -> None:
    kernel = Kernel()
    kernel.accept(start(well_formed(text)), 1)

    goal = kernel.blocks(1, 1)[0]

    assert isinstance(goal, UserBlock)
    assert goal == UserBlock(start(well_formed(text)).goal)


def test_given_a_lone_surrogate_when_an_input_is_encoded_then_it_is_refused_not_garbled() -> None:
    with pytest.raises((UnicodeEncodeError, msgspec.ValidationError)):
        encode_input(start("\ud83d"))
