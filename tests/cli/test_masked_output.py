"""What looks like a secret is masked wherever a command writes it, and what holds it stays what it was."""

from __future__ import annotations

import json
from io import StringIO
from itertools import groupby

import pytest

from deepstrike.cli.safe import one_line
from deepstrike.cli.show import JsonShow, PlainShow, progress_of
from deepstrike.secrets.shapes import masked
from deepstrike.stream import (
    AgentEvent,
    DoneEvent,
    ErrorEvent,
    NoticeEvent,
    PendingRequest,
    RetryEvent,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolDeniedEvent,
    ToolResultEvent,
)

KEY = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
WAITING = (
    PendingRequest("4", "suspension", "c1", "buy", {"token": KEY}, payload={"say": KEY}),
    PendingRequest("9", "approval", "c2", "pay", {"api_key": "abcdefgh"}, reason=f"it has {KEY}"),
)
TELLING: list[StreamEvent] = [
    ThinkingDelta(KEY),
    TextDelta(f"it is {KEY}"),
    ToolCallEvent("1", "look", {"at": KEY, "access_token": "abcdefgh", "deep": {"password": "abcdefgh"}}),
    AgentEvent(("a",), ToolCallEvent("1", "look", {"at": KEY})),
    ToolDeltaEvent("1", "look", KEY),
    ToolDeniedEvent("1", "look", "permission", KEY),
    ToolResultEvent("1", f"first\n{KEY}", False, "look"),
    ToolResultEvent("1", f"OSError: {KEY}", True, "look", "exception"),
    RetryEvent(1, 500, f"OSError: {KEY}", "1", "look"),
    NoticeEvent("fallback", KEY),
    ErrorEvent(f"401: {KEY}", "unauthorized"),
    DoneEvent(1, 5, "suspended", None, "s", None, WAITING),
]


def test_given_keys_in_pieces_when_shown_as_json_then_none_can_be_put_together() -> None:
    pieces = [f"it is {KEY[:4]}", KEY[4:20], KEY[20:]]
    ways: list[StreamEvent] = []
    for piece in pieces:
        ways += [TextDelta(piece), AgentEvent(("a",), ThinkingDelta(piece)), AgentEvent(("b",), TextDelta(piece))]
    ways += [AgentEvent(("a",), TextDelta("then")), DoneEvent(1, 5, "completed", None, "s", None)]
    out = StringIO()

    with JsonShow(out) as show:
        for event in ways:
            show.event(event)

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    own = [line["delta"] for line in lines if line["type"] == "text_delta"]
    of = {
        (*line["path"], line["event"]["type"]): "".join(
            each["event"]["delta"] for each in lines if each["type"] == "agent" and each["path"] == line["path"]
        )
        for line in lines
        if line["type"] == "agent"
    }
    assert "".join(own) == "it is ***"
    assert of == {
        ("a", "thinking_delta"): "it is ***then",
        ("a", "text_delta"): "it is ***then",
        ("b", "text_delta"): "it is ***",
    }


def test_given_keys_in_every_event_when_shown_as_lines_then_none_is_readable() -> None:
    out = StringIO()
    with PlainShow(out, out) as show:
        for event in TELLING:
            show.event(event)
    assert "it is ***" in out.getvalue()
    assert "retry 1 of look in 0.5 s: OSError: ***" in out.getvalue()
    assert KEY not in out.getvalue()
    assert "abcdefgh" not in out.getvalue()


def test_given_keys_in_every_event_when_shown_as_json_then_none_is_readable_and_all_is_json() -> None:
    out = StringIO()
    with JsonShow(out) as show:
        for event in TELLING:
            show.event(event)
    assert KEY not in out.getvalue()
    assert "abcdefgh" not in out.getvalue()
    shown = [json.loads(line) for line in out.getvalue().splitlines()]
    told, come = ([each["type"] for each in shown], [event.type for event in TELLING])
    assert [kind for kind, _ in groupby(told)] == [kind for kind, _ in groupby(come)]  # a text may come in other pieces


@pytest.mark.parametrize("pieces", range(1, 9))
def test_given_a_key_that_streams_in_pieces_when_shown_then_nothing_of_it_is_and_all_else_is(pieces: int) -> None:
    text = f"It says:\n{KEY}, and a risk-averse sk-ill word.\nThat is all"
    out = StringIO()
    with PlainShow(out, StringIO()) as show:
        for at in range(0, len(text), pieces):
            show.event(TextDelta(text[at : at + pieces]))
        show.event(DoneEvent(1, 5, "completed"))
    assert out.getvalue() == text.replace(KEY, "***") + "\n"


def test_given_a_key_where_a_line_is_cut_when_put_on_one_line_then_no_part_of_it_is_shown() -> None:
    for before in range(36, 80):
        assert "0123" not in one_line(" " * before + KEY, 20)
    assert "0123" not in progress_of(ToolDeltaEvent("1", "look", "x " * 40 + KEY))


WITHIN = [
    (f"says:\n{KEY}", "says:\n***"),
    (f"\u00e9{KEY}\u00e9", "\u00e9***\u00e9"),
    ("x\nAWS_SECRET=abcdefgh\ny", "x\nAWS_SECRET=***\ny"),
    ('A_TOKEN=abcdefg"x', 'A_TOKEN=***"x'),
    ("A_TOKEN=abcdefg\\", "A_TOKEN=***\\"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE", "***"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nmore", "***\nmore"),
    ({"access_token": 'ab"cd\\ef"gh\n', "n": 1}, {"access_token": "***", "n": 1}),
    ({"password": 'ab"cdef\\', "then": 'a\\"b'}, {"password": "***", "then": 'a\\"b'}),
    ({"password": "abcdef\\\\", "then": "b"}, {"password": "***", "then": "b"}),
    ({"a": {"password": "abcdefgh"}}, {"a": {"password": "***"}}),
]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("value", "shown"), WITHIN)
def test_given_a_secret_within_json_when_masked_then_it_is_still_json(value: object, shown: object, depth: int) -> None:
    text = value
    for _ in range(depth):
        text = json.dumps(text)
    found: object = masked(str(text))
    for _ in range(depth):
        found = json.loads(str(found))
    assert found == shown


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        "sk-ant-api03-abcdefghijklmnop_QRSTUV-0123",
        "sk-0123456789abcdef0123456789abcdef",
        "AIza" + "a1-_b" * 7,
        "gsk_" + "a1B2" * 6,
        "xai-" + "a1B2" * 6,
        "hf_" + "a1B2" * 6,
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 8,
        "AKIA" + "ABCD2345" * 2,
        "xoxb-123456789012-abcdef",
        "SG.abcdefghij0123456789.abcdefghij0123456789",
        "eyJhbGciOiJIUzI1NiIsInR5.eyJzdWIiOiIxMjM0NTY3.SflKxwRJSMeKKF2QT4fw",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_given_a_vendors_key_when_masked_then_nothing_of_it_is_left(secret: str) -> None:
    assert masked(f"key={secret}, and more") == "key=***, and more"


@pytest.mark.parametrize(
    "text",
    [
        "sk-ill",
        "task-123456789012345678901234",
        "Bearer of bad news",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "risk-averse-investors-0123456789abcdefghij",
    ],
)
def test_given_ordinary_text_when_masked_then_it_stays(text: str) -> None:
    assert masked(text) == text
