"""What a provider has to tell that is no output: shown at once, recorded with the reply."""

from __future__ import annotations

import json

import pytest
from doubles import Script, done_of, events_of, only, runner_of

from deepstrike import InMemorySessionLog, NoticeEvent, TextDelta, ThinkingDelta, UsageEvent
from deepstrike.providers.base import Finish, Source
from deepstrike.stream import RetryEvent
from deepstrike.wire.message import Notice, Usage
from deepstrike.wire.policy import Price

DROPPED = Notice("dropped_field", "the model takes no temperature")
OTHER = Source("messages", "claude", Price(input=2_000_000, output=4_000_000, cached=0, cache_write=0))


async def test_a_notice_is_shown_where_it_came_and_recorded_with_the_reply() -> None:
    log = InMemorySessionLog()
    model = Script([DROPPED, OTHER, TextDelta("hi"), Usage(100, 10), Finish("stop")])
    events = await events_of(runner_of(model, log=log).run_streaming("hello", session_id="s"))
    assert events[:-1] == [
        NoticeEvent("dropped_field", "the model takes no temperature"),
        TextDelta("hi"),
        UsageEvent(100, 10, cost_usd=0.00024),
    ]
    replied = json.loads((await log.read("s"))[1])["event"]
    assert replied["notices"] == [{"code": "dropped_field", "message": "the model takes no temperature"}]
    assert (replied["dialect"], replied["model"], replied["cost"]) == ("messages", "claude", 240)
    assert done_of(events).usage == UsageEvent(100, 10, cost_usd=0.00024)


async def test_a_reply_without_notices_records_none() -> None:
    log = InMemorySessionLog()
    await runner_of(Script([TextDelta("hi"), Finish("stop")]), log=log).run("hello", session_id="s")
    assert not {"notices", "price"} & set(json.loads((await log.read("s"))[1])["event"])


async def test_after_a_notice_and_a_retry_the_answer_begins_anew() -> None:
    again = RetryEvent(1, 500, "overloaded")
    model = Script([DROPPED, ThinkingDelta("hm"), again, OTHER, TextDelta("hi"), Usage(1, 1), Finish("stop")])
    result = await runner_of(model).run("hello")
    assert (result.status, result.text) == ("completed", "hi")


async def test_a_call_that_fails_behind_a_notice_alone_has_shown_nothing() -> None:
    log = InMemorySessionLog()
    model = Script([DROPPED, OTHER])
    events = await events_of(runner_of(model, log=log).run_streaming("hello", session_id="s"))
    assert [event.code for event in only(NoticeEvent, events)] == ["dropped_field"]
    assert [json.loads(line)["event"]["type"] for line in await log.read("s")] == ["started", "failed", "ended"]


@pytest.mark.parametrize("text", ["lone \ud800", "two\nlines"])
async def test_a_notice_with_any_text_is_recorded(text: str) -> None:
    model = Script([Notice("odd", text), TextDelta("hi"), Finish("stop")])
    events = await events_of(runner_of(model).run_streaming("hello"))
    assert [event.message for event in only(NoticeEvent, events)] == [text.replace("\ud800", "\ufffd")]
    assert done_of(events).status == "completed"
