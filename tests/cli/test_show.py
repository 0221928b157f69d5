"""A run is shown as plain lines or as JSON lines, with nothing in it that a terminal obeys."""

from __future__ import annotations

import json
from io import StringIO

from deepstrike.cli.show import JsonShow, PlainShow, Show
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
    ToolResultEvent,
    UsageEvent,
)
from deepstrike.testing.clock import ManualClock


def shown(show: Show, *events: StreamEvent) -> None:
    with show:
        for event in events:
            show.event(event)


def test_given_a_run_in_a_pipe_when_shown_then_the_answer_and_the_rest_are_apart() -> None:
    answer, progress = StringIO(), StringIO()
    with ManualClock():
        shown(
            PlainShow(answer, progress),
            ThinkingDelta("hm"),
            TextDelta("Let me "),
            TextDelta("see."),
            ToolCallEvent("1", "add", {"x": 17, "y": "a\nb"}),
            ToolDeltaEvent("1", "add", "half way"),
            ToolResultEvent("1", "4\n5", False, "add"),
            ToolResultEvent("2", "not a number", True, "add", "invalid_arguments"),
            RetryEvent(1, 1500, "overloaded"),
            TextDelta(""),
            TextDelta("45\n"),
            DoneEvent(2, 57, "completed"),
        )
    assert answer.getvalue() == "Let me see.\n45\n"
    assert progress.getvalue().splitlines() == [
        '→ add(x=17, y="a\\nb")',
        "← 4 5",
        "✗ add: invalid_arguments: not a number",
        "retry 1 in 1.5 s: overloaded",
        "2 turns · 57 tokens · 0.00 s",
    ]


def test_given_a_failed_run_when_shown_then_error_and_status_close_it() -> None:
    answer, progress = StringIO(), StringIO()
    with ManualClock():
        shown(
            PlainShow(answer, progress),
            TextDelta("half"),
            ErrorEvent("no credit\nleft", "quota_exhausted", False),
            DoneEvent(1, 3, "error"),
        )
    assert answer.getvalue() == "half\n"
    assert progress.getvalue() == "error: no credit left [quota_exhausted]\n1 turn · 3 tokens · 0.00 s · error\n"


def test_given_escape_sequences_when_shown_then_none_reaches_the_streams() -> None:
    both = StringIO()
    evil = "\x1b]0;x\x07\x9b\u202e\u2028"
    shown(
        PlainShow(both, both),
        TextDelta(evil),
        ToolCallEvent("1", evil, {evil: evil}),
        ToolResultEvent("1", evil, False, evil),
        ErrorEvent(evil),
    )
    assert not set(both.getvalue()) & set(evil) - set("]0;x")


def test_given_events_when_shown_as_json_then_each_line_is_type_and_fields() -> None:
    out = StringIO()
    waiting = PendingRequest("7", "approval", "1", "add", {}, reason="why")
    shown(
        JsonShow(out),
        TextDelta("é\u2028\x9b"),
        ToolCallEvent("1", "add", {"x": [1, 2.5, None]}),
        ToolDeltaEvent("1", "add", "", chunk=float("inf")),
        AgentEvent(("a",), TextDelta("x")),
        DoneEvent(1, 5, "suspended", UsageEvent(3, 2), "s", None, (waiting,)),
    )
    assert out.getvalue().isascii()
    usage = {"input_tokens": 3, "output_tokens": 2, "cached_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0}
    asked: dict[str, object] = {
        "request_id": "7",
        "kind": "approval",
        "call_id": "1",
        "name": "add",
        "arguments": {},
        "payload": None,
        "reason": "why",
    }
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"type": "text_delta", "delta": "é\u2028\x9b"},
        {"type": "tool_call", "id": "1", "name": "add", "arguments": {"x": [1, 2.5, None]}},
        {"type": "tool_delta", "call_id": "1", "name": "add", "delta": "", "chunk": "inf"},
        {"type": "agent", "path": ["a"], "event": {"type": "text_delta", "delta": "x"}},
        {
            "type": "done",
            "iterations": 1,
            "total_tokens": 5,
            "status": "suspended",
            "usage": {"type": "usage", **usage, "cost_usd": None},
            "session_id": "s",
            "output": None,
            "pending": [asked],
        },
    ]


def test_given_a_run_that_waits_when_shown_then_its_requests_and_the_way_to_answer_are_told() -> None:
    out = StringIO()
    asked = (
        PendingRequest("4", "suspension", "c1", "buy", {"what": "a pizza"}, payload={"price": "9 €\x1b[31m"}),
        PendingRequest("9", "approval", "c2", "pay", {}, reason="it is dear"),
    )
    with ManualClock():
        shown(
            PlainShow(out, out),
            NoticeEvent("fallback", "another\nmodel answers"),
            DoneEvent(1, 5, "suspended", None, "my order", None, asked),
        )
    assert out.getvalue() == (
        "note: another model answers [fallback]\n"
        '? 4  suspension of buy(what="a pizza"): {"price": "9 €\\u001b[31m"}\n'
        "? 9  approval of pay(): it is dear\n"
        "answer with: deepstrike resume 'my order' --answer ID=VALUE\n"
        "1 turn · 5 tokens · 0.00 s · suspended\n"
    )
