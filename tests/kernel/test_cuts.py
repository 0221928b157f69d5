"""Shortening by tokens from Python."""

from __future__ import annotations

import pytest

from deepstrike.kernel import clip, count


@pytest.mark.parametrize("model", ["gpt-4o", "an unknown one"])
@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_given_every_limit_when_text_is_cut_then_on_character_boundaries_and_never_above_it(k: int, model: str) -> None:
    text = "a" * k + "中🛡é" * 200
    whole = count(text, model)

    for limit in range(400):
        cut = clip(text, model, limit)
        assert cut is not None
        assert cut[1] == whole
        assert count(cut[0], model) <= limit
        assert "\ufffd" not in cut[0]


@pytest.mark.parametrize("character", ["中", "🛡"])
def test_given_a_huge_result_when_cut_then_what_is_kept_is_intact_and_the_line_says_how_much_is_missing(
    character: str,
) -> None:
    cut = clip(character * 300_000, "gpt-4o", 1000)

    assert cut is not None
    head, line, tail = cut[0].split("\n")
    assert set(head) == set(tail) == {character}
    assert line == f"[… {300_000 - len(head) - len(tail)} of 300000 characters left out …]"


def test_given_text_that_fits_when_cut_then_it_is_left_alone() -> None:
    assert clip("hello world", "gpt-4o", 2) is None
    assert clip("", "gpt-4o", 0) is None
