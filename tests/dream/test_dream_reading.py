"""What the model is shown of a session, what is taken of its answer, and where an insight is said to come from."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from dreams import asked_text, form
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.dream.asking import request
from deepstrike.dream.cutting import shown
from deepstrike.dream.insights import LONGEST, MOST, Insight, parsed
from deepstrike.dream.provenance import Origin, Turns
from deepstrike.dream.telling import tells
from deepstrike.kernel import count
from deepstrike.memory import SessionData
from deepstrike.wire.policy import Limits

Message = Mapping[str, object]


def said(text: str, role: str = "user") -> Message:
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    "answer",
    [
        form("User likes tea"),
        f"```json\n{form('User likes tea')}\n```",
        f"Here is what I found:\n\n```\n{form('User likes tea')}\n```\nHope it helps.",
        f"Let me see. {{not JSON}} {form('User likes tea')} That is all.",
        '\ufeff{"insights": [{"text": " User\\n likes  tea", "confidence": 0.9}], "more": 1}',
        '{"insights": [{"text": "User likes tea", "confidence": 0.9}, {"text": 5}, "x", null, {"text": " "}]}',
        '{"insights": [{"text": "user likes TEA", "confidence": 0}, {"text": "User likes tea", "confidence": 0.9}]}',
    ],
)  # fmt: skip
def test_given_the_form_with_anything_around_it_when_parsed_then_its_insights_are_taken(answer: str) -> None:
    assert parsed(answer) == [Insight("User likes tea", 0.9)]


@pytest.mark.parametrize(
    "answer", ["", "nothing", "[]", "{}", '{"insights": {}}', '{"insights": "tea"}', '{"insights": [', "5"]
)
def test_given_anything_else_when_parsed_then_there_is_nothing(answer: str) -> None:
    assert parsed(answer) is None


def test_given_odd_insights_when_parsed_then_only_those_of_the_form_are_taken_and_not_too_many() -> None:
    odd: list[dict[str, object]] = [
        {"text": "sure", "confidence": 7},
        {"text": "unsure", "confidence": -1},
        {"text": "unsaid"},
        {"text": "a word", "confidence": "high"},
        {"text": "a bool", "confidence": True},
        {"text": "x" * (LONGEST + 1), "confidence": 1},
        {"text": "...", "confidence": 1},
    ]

    assert parsed(json.dumps({"insights": odd})) == [
        Insight("sure", 1.0),
        Insight("unsure", 0.0),
        Insight("unsaid", 0.5),
    ]
    assert parsed('{"insights": []}') == []
    assert len(parsed(form(*(f"fact {at}" for at in range(MOST + 9)))) or []) == MOST


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80))
def test_given_any_answer_when_parsed_then_nothing_breaks(answer: str) -> None:
    assert parsed(answer) is None


def shown_turns(lines: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.splitlines()]


def test_given_a_session_that_fits_when_shown_then_it_is_whole_and_outside_text_is_marked() -> None:
    messages = [said("hi"), said("42", "tool"), {"role": "user", "name": "Bo", "content": "I'm Bo"}, said(" ")]

    whole = shown(messages, "", 1000)

    assert whole.note == ""
    assert shown_turns(whole.lines) == [
        {"turn": 0, "from": "user", "text": "hi"},
        {"turn": 1, "from": "tool", "text": "42", "untrusted": True},
        {"turn": 2, "from": "Bo", "text": "I'm Bo"},
    ]


def test_given_one_long_turn_when_cut_then_the_short_ones_stay_whole_and_what_is_missing_is_told() -> None:
    messages = [said("I prefer green tea"), said("page " * 50_000 + "the end", "tool"), said("thanks")]

    cut = shown(messages, "", 1000)

    turns = shown_turns(cut.lines)
    assert "has 3 turns and was cut to fit" in cut.note
    assert (turns[0]["text"], turns[2]["text"]) == ("I prefer green tea", "thanks")
    text = str(turns[1]["text"])
    assert text.startswith("page page")
    assert text.endswith("the end")
    assert "characters left out" in text
    assert 500 < count(cut.lines, "") <= 1000


def test_given_long_turns_of_all_kinds_when_cut_then_the_users_keep_most_and_tools_least() -> None:
    long = "word " * 20_000
    messages = [said(f"My name is Ann. {long}"), said(long), said(long, "assistant"), said(long, "tool")]

    lengths = [len(str(turn["text"])) for turn in shown_turns(shown(messages, "", 4000).lines)]

    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 3 * lengths[3]


def test_given_very_many_turns_when_cut_then_the_telling_ones_are_kept_and_gaps_are_told() -> None:
    messages = [said("I live in Rome" if at % 500 == 250 else f"small talk number {at}") for at in range(5000)]

    turns = shown_turns(shown(messages, "", 2000).lines)

    assert [turn["turn"] for turn in turns if turn.get("text") == "I live in Rome"] == list(range(250, 5000, 500))
    numbers = [int(str(turn["turn"])) for turn in turns if "turn" in turn]
    assert len(numbers) > 30
    assert max(numbers[at + 1] - numbers[at] for at in range(len(numbers) - 1)) < 500
    assert any("left_out" in turn for turn in turns)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=60), st.integers(1, 300)),
        max_size=40,
    ),
    st.integers(200, 3000),
)
def test_given_any_session_when_shown_then_it_fits_and_every_line_is_a_turn(
    given_turns: list[tuple[str, str, int]], tokens: int
) -> None:
    messages = [said(text * times, role) for role, text, times in given_turns]

    lines = shown(messages, "", tokens).lines

    assert count(lines, "") <= tokens
    assert all(line.keys() <= {"turn", "from", "text", "untrusted", "left_out"} for line in shown_turns(lines))


def test_given_a_huge_session_when_asked_about_then_the_request_is_of_bounded_size() -> None:
    session = SessionData("s", "ann", [said("text " * 1_000_000)] * 3)
    limits = Limits(max_turns=1, window=8000, reserve=2000, parallel=1)

    asked = request(session, {"max_output_tokens": 500}, limits, "")

    assert count(asked_text(asked), "") < 8000 - 2000
    assert (asked.max_output, asked.window, asked.reserve) == (500, 8000, 2000)


@pytest.mark.parametrize(
    "text",
    ["Remember that I am vegan", "my sister's name is Eva", "I live in Rome", "Actually it is Tuesday",
     "deadline: Friday", "We switched to Postgres", "From now on answer in French"],
)  # fmt: skip
def test_given_something_worth_remembering_when_looked_at_then_it_tells(text: str) -> None:
    assert tells(said(text))
    assert not tells(said(text, "tool"))
    assert not tells(said(text, "assistant"))


@pytest.mark.parametrize("text", ["What is 17 + 28?", "thanks!", "Write a haiku about rain"])
def test_given_small_talk_when_looked_at_then_it_does_not_tell(text: str) -> None:
    assert not tells(said(text))


TALK = [
    said("I live in Berlin"),
    said("Noted.", "assistant"),
    said("Weather report: Rome 20 degrees, account number 4711", "tool"),
    said("By the way, I moved to Rome"),
    said("Your account number is 4711", "assistant"),
]


@pytest.mark.parametrize(
    ("insight", "record", "trusted"),
    [
        ("User lives in Berlin", 0, True),
        ("User moved to Rome", 3, True),
        ("The account number is 4711", 2, False),
        ("Nothing of the kind", 4, False),
    ],
)
def test_given_an_insight_when_its_origin_is_sought_then_it_is_the_turn_that_says_it(
    insight: str, record: int, trusted: bool
) -> None:
    source = str(TALK[record]["content"])

    assert Turns(TALK).origin(insight) == Origin(record, source, trusted)


def test_given_a_session_without_outside_text_when_no_turn_says_it_then_it_is_trusted() -> None:
    assert Turns([said("Ich wohne in Rom")]).origin("User lives somewhere") == Origin(0, "Ich wohne in Rom", True)
    assert Turns([]).origin("anything") == Origin(0, "", True)
