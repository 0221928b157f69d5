"""`summarizer`: a model writes down what leaves the prompt, beside what is kept of it word for word."""

from __future__ import annotations

import asyncio

import pytest
from doubles import Script, assert_paired, done_of, events_of, kinds_of, only, say, user_texts
from summing import DEMAND, Late, Reader, Stuck, runner, written

from deepstrike import (
    ConfigError,
    ContextCompressedEvent,
    InMemorySessionLog,
    NoticeEvent,
    RuntimeOptions,
    RuntimeSignal,
    SignalGateway,
    UsageEvent,
)
from deepstrike.errors import Overloaded
from deepstrike.host.summary import SUMMARY_SECONDS
from deepstrike.kernel import Kernel
from deepstrike.providers.base import ModelEvent
from deepstrike.replay.proof import replay
from deepstrike.testing import ManualClock
from deepstrike.wire.message import Text, UserBlock


async def test_given_a_summarizer_when_turns_leave_then_the_prompt_tells_what_it_wrote_beside_what_is_kept() -> None:
    reader, script, log = Reader(40), Script(written("Pages were read.")), InMemorySessionLog()

    events = await events_of(runner(reader, script, log).run_streaming(DEMAND, session_id="s"))

    assert done_of(events).status == "completed"
    opening = "\n".join(user_texts(reader.turns[-1][:1]))
    assert "Summary, written by a model, not word for word:\n> Pages were read." in opening
    assert DEMAND in opening
    assert "recall(" in opening
    assert len(script.requests) == len([kind for kind in await kinds_of(log, "s") if kind == "summarized"]) >= 1
    for turns in reader.turns:
        assert_paired(turns)


async def test_given_a_summarizer_when_asked_then_it_reads_what_left_and_the_summary_before() -> None:
    reader, log = Reader(80), InMemorySessionLog()
    script = Script(written("The first."), written("The second."))

    await events_of(runner(reader, script, log).run_streaming(DEMAND, session_id="s"))

    first, second = script.requests[:2]
    assert first.tools == ()
    (turn,) = first.turns
    assert isinstance(turn, UserBlock)
    (said,) = turn.parts
    assert isinstance(said, Text)
    assert "assistant calls page(" in said.text
    assert "Summary of what left before:\nThe first." in repr(second.turns[0]).replace("\\n", "\n")


async def test_given_what_a_summary_took_when_the_goal_ends_then_it_is_in_the_usage_but_no_turn() -> None:
    reader, script, log = Reader(40), Script(written("Read.", spent=1_000_000)), InMemorySessionLog()

    events = await events_of(runner(reader, script, log).run_streaming(DEMAND, session_id="s"))

    done = done_of(events)
    asked = len(script.requests)
    assert done.iterations == 41
    assert done.usage is not None
    assert done.usage.input_tokens == sum(each.input_tokens for each in only(UsageEvent, events))
    assert len([each for each in only(UsageEvent, events) if each.input_tokens == 1_000_000]) == asked


async def test_given_a_budget_when_a_summary_spends_it_then_the_goal_ends_by_it() -> None:
    reader, script, log = Reader(40), Script(written("Read.", spent=1_000_000)), InMemorySessionLog()

    events = await events_of(
        runner(reader, script, log, max_total_tokens=900_000).run_streaming(DEMAND, session_id="s")
    )

    assert done_of(events).status == "token_budget"


@pytest.mark.parametrize(
    ("reply", "told"),
    [(Overloaded("too busy"), "too busy"), (say("   "), "the model wrote no summary"), (ValueError("odd"), "odd")],
)
async def test_given_a_summarizer_that_fails_when_turns_leave_then_the_run_goes_on_with_the_digest(
    reply: BaseException | list[ModelEvent], told: str
) -> None:
    reader, log = Reader(40), InMemorySessionLog()

    events = await events_of(runner(reader, Script(reply), log).run_streaming(DEMAND, session_id="s"))

    assert done_of(events).status == "completed"
    notices = only(NoticeEvent, events)
    assert {notice.code for notice in notices} == {"summary_failed"}
    assert told in notices[0].message
    opening = "\n".join(user_texts(reader.turns[-1][:1]))
    assert (DEMAND in opening, "Summary, written" in opening) == (True, False)


async def test_given_a_summarizer_that_does_not_answer_when_its_time_is_up_then_the_run_goes_on() -> None:
    stuck, log = Stuck(), InMemorySessionLog()
    with ManualClock() as clock:
        running = asyncio.ensure_future(events_of(runner(Reader(30), stuck, log).run_streaming(DEMAND, session_id="s")))
        while not running.done():
            await asyncio.wait({running, asyncio.ensure_future(stuck.asked.wait())}, return_when="FIRST_COMPLETED")
            stuck.asked.clear()
            await clock.advance(SUMMARY_SECONDS)
        events = await running

    assert done_of(events).status == "completed"
    assert "within 60 s" in only(NoticeEvent, events)[0].message


@pytest.mark.parametrize("urgency", ["critical", "message"])
async def test_given_something_urgent_while_a_summary_is_written_when_asked_next_then_the_model_reads_it(
    urgency: str,
) -> None:
    reader, late, log, gateway = Reader(40), Late(), InMemorySessionLog(), SignalGateway()
    run = runner(reader, late, log, signals=gateway)
    running = asyncio.ensure_future(events_of(run.run_streaming(DEMAND, session_id="s")))
    await late.asked.wait()
    before = len(reader.turns)

    if urgency == "critical":
        gateway.ingest(RuntimeSignal("alarm", {"text": "Read faster."}, "clock", "alert", "critical"))
    else:
        await run.send("s", "Read faster.")
    late.go.set()
    events = await running

    assert done_of(events).status == "completed"
    assert "Read faster." in "\n".join(user_texts(reader.turns[before]))
    assert replay(await log.read("s")).divergence is None


async def test_given_a_run_left_while_a_summary_is_written_when_resumed_then_it_is_asked_for_anew() -> None:
    stuck, log = Stuck(), InMemorySessionLog()
    run = runner(Reader(40), stuck, log).run_streaming(DEMAND, session_id="s")
    running = asyncio.ensure_future(events_of(run))
    await stuck.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    script = Script(written("Seen."))

    events = await events_of(runner(Reader(0), script, log).resume("s"))

    assert done_of(events).status == "completed"
    assert "summarized" in await kinds_of(log, "s")
    assert len(script.requests) >= 1


async def test_given_a_summary_in_the_log_when_replayed_then_no_model_is_asked_and_the_prompt_is_the_same() -> None:
    reader, script, log = Reader(40), Script(written("Pages were read.")), InMemorySessionLog()
    await events_of(runner(reader, script, log).run_streaming(DEMAND, session_id="s"))
    records, asked = await log.read("s"), len(script.requests)

    proof = replay(records)

    assert proof.divergence is None
    assert len(script.requests) == asked
    assert "Pages were read." in repr(Kernel.replay(records).task())


async def test_given_a_long_summary_when_written_then_it_is_cut_to_its_room() -> None:
    reader, script, log = Reader(40), Script(written("word " * 20_000)), InMemorySessionLog()

    events = await events_of(runner(reader, script, log).run_streaming(DEMAND, session_id="s"))

    assert done_of(events).status == "completed"
    assert all(each.tokens_after < 3_000 for each in only(ContextCompressedEvent, events))
    assert len("\n".join(user_texts(reader.turns[-1][:1]))) < 12_000


def test_given_a_summarizer_that_is_none_when_built_then_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="summarizer must have the method stream"):
        RuntimeOptions(provider=Reader(0), summarizer="gpt")  # type: ignore[arg-type]
