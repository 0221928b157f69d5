"""Reasoning in `<think>` tags, whatever the pieces it arrives in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from wires import Said, decode_pieces, event, put_together, stream

from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.dialects.chat.think import ThinkSplitter
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask

if TYPE_CHECKING:
    from collections.abc import Iterable

CASES: dict[str, tuple[str, str, str]] = {
    "tags": ("<think>plan</think>Result: 7", "plan", "Result: 7"),
    "white space around the tags": ("\n<think>\nplan\n more\n</think>\n\n**Result**\n", "plan\n more", "**Result**\n"),
    "only thinking, never closed": ("<think>hmm, first I would", "hmm, first I would", ""),
    "cut inside the closing tag": ("<think>hmm</thi", "hmm</thi", ""),
    "a smaller sign in the thinking": ("<think>a < b </ c</think>x", "a < b </ c", "x"),
    "no tags": ("if a < b and c <th", "", "if a < b and c <th"),
    "other tags": ("use <b>bold</b> and <thinking>", "", "use <b>bold</b> and <thinking>"),
    "a tag further on is text": ("Say <think>x", "", "Say <think>x"),
    "a second pair is text": ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    "the closing tag alone": ("easy one</think>Paris.", "", "easy oneParis."),
    "cut inside the opening tag": ("<thi", "", "<thi"),
    "white space only": ("  \n", "", "  \n"),
    "nothing thought": ("<think>\n\n</think>\n\nyes", "", "yes"),
    "nothing": ("", "", ""),
}


def split(pieces: Iterable[str]) -> tuple[str, str]:
    """The thinking and the text of these pieces."""
    splitter = ThinkSplitter()
    said = [splitter.push(piece) for piece in pieces] + [splitter.close()]
    return "".join(thinking for thinking, _ in said), "".join(text for _, text in said)


@pytest.mark.parametrize("name", CASES)
def test_given_text_with_or_without_tags_when_cut_anywhere_then_thinking_and_answer_are_the_same(name: str) -> None:
    whole, thinking, text = CASES[name]
    assert split([whole]) == (thinking, text)
    assert split(whole) == (thinking, text)
    for first in range(len(whole)):
        for second in range(first, len(whole)):
            assert split([whole[:first], whole[first:second], whole[second:]]) == (thinking, text)


def test_given_text_without_tags_when_it_streams_then_it_is_not_held_back() -> None:
    splitter = ThinkSplitter()
    assert [splitter.push(piece) for piece in ("if a ", "< b", " and")] == [("", "if a "), ("", "< b"), ("", " and")]


def decoder(*, expose: bool = True) -> ChatDecoder:
    return ChatDecoder({}, Faults(Mask([])), split_think=True, expose_reasoning=expose)


def test_given_a_profile_that_splits_when_tags_are_cut_across_deltas_then_thinking_and_text_come_apart() -> None:
    body = stream(*(event({"content": piece}) for piece in ("<th", "ink>plan</thi", "nk>Result: 7")))
    assert put_together(decode_pieces([body], decoder())) == Said("Result: 7", "plan", finish="stop")
    assert put_together(decode_pieces([body], decoder(expose=False))) == Said("Result: 7", finish="stop")


def test_given_a_tag_that_never_closes_when_the_answer_is_cut_by_length_then_no_reasoning_becomes_text() -> None:
    body = stream(event({"content": "<think>hmm, first"}), event({"content": " I would"}), finish="length")
    assert put_together(decode_pieces([body], decoder())) == Said("", "hmm, first I would", finish="length")


def test_given_a_held_back_sign_when_the_stream_ends_then_it_is_given_out() -> None:
    body = stream(event({"content": "a <"}))
    assert put_together(decode_pieces([body], decoder())) == Said("a <", finish="stop")


def test_given_a_profile_that_does_not_split_when_tags_come_then_they_are_text() -> None:
    body = stream(event({"content": "<think>a</think>b"}))
    assert put_together(decode_pieces([body])) == Said("<think>a</think>b", finish="stop")
