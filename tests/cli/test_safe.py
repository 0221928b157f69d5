"""Text from outside is shown, never obeyed."""

from __future__ import annotations

import json
import unicodedata

import pytest

from deepstrike.cli.safe import one_line, visible, visible_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("crlf\r\n", "crlf\n"),
        ("over\rwritten", "over\\x0dwritten"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\u202eb\u2066c\u200fd", "a\\u{202e}b\\u{2066}c\\u{200f}d"),
        ("a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"),
        ("\ud800", "\\u{d800}"),
        ("\U000e0041", "\\u{e0041}"),
        ("naïve 日本 👩\u200d💻", "naïve 日本 👩\u200d💻"),
    ],
)
def test_given_control_characters_when_shown_then_they_are_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_given_every_character_when_shown_then_no_control_character_is_left() -> None:
    text = visible("".join(map(chr, range(0x110000))))
    left = {ord(char) for char in text if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")}
    assert left == {0x09, 0x0A}
    assert not [
        char for char in text if unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "PDI")
    ]


def test_given_several_lines_when_put_on_one_then_there_is_one_of_limited_length() -> None:
    assert one_line(" a\n\n b\x1b\u2028c ") == "a b\\x1b c"
    assert one_line("word " * 100, 9) == "word word …"
    assert one_line("x" * 10_000_000, 3) == "xxx …"


def test_given_json_text_with_control_characters_when_made_visible_then_it_is_the_same_value() -> None:
    value = {"text": "a\x7f\x9b2J\u202eb\u2028c\U000e0041 naïve 日本", "plain": "a\tb"}

    line = visible_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(line) == value
    assert "naïve 日本" in line
    assert line == visible(line)
