"""Summaries that go wrong: cut, endless, deaf to cancellation, stopped, telling a secret, killed in between."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from doubles import Script, done_of, events_of, kinds_of, only, user_texts
from summing import DEMAND, Reader, Stuck, runner, written

import deepstrike
from deepstrike import FileSessionLog, InMemorySessionLog, NoticeEvent, RuntimeSignal, SignalGateway, secrets
from deepstrike.host.summary import SUMMARY_SECONDS
from deepstrike.kernel import decode_record
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest
from deepstrike.replay.proof import replay
from deepstrike.secrets import HIDDEN, Bound, binding
from deepstrike.stream import TextDelta
from deepstrike.testing import ManualClock
from deepstrike.wire.event import Summarized
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SOURCES = Path(deepstrike.__file__).parents[1]
KEY = "hunter2-hunter2"
# A process that dies while its first summary is written.
MORTAL = """
import asyncio, os, signal, sys
from summing import DEMAND, Reader, runner
from deepstrike import FileSessionLog

class Deadly:
    async def stream(self, request):
        os.kill(os.getpid(), signal.SIGKILL)
        yield

async def main():
    await runner(Reader(40), Deadly(), FileSessionLog(sys.argv[1])).run(DEMAND, session_id="s")

asyncio.run(main())
"""


class Deaf:
    """Says something now and then, whatever cancels it; the last word is said when `over` is set."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.over = asyncio.Event()

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.set()
        while not self.over.is_set():
            try:
                await self.over.wait()
            except asyncio.CancelledError:  # noqa: PERF203
                yield TextDelta("no")
        yield Finish("stop")


class Endless:
    """Never stops talking. `said` counts its words."""

    def __init__(self) -> None:
        self.said = 0

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        while True:
            self.said += 1
            yield TextDelta("word " * 100)


async def test_given_a_stream_that_is_cut_when_turns_leave_then_there_is_no_summary() -> None:
    reader, script, log = Reader(40), Script([TextDelta("Pages we"), Usage(5, 1)]), InMemorySessionLog()

    events = await events_of(runner(reader, script, log).run_streaming(DEMAND, session_id="s"))

    assert done_of(events).status == "completed"
    assert "without a finish reason" in only(NoticeEvent, events)[0].message
    assert "Pages we" not in "\n".join(user_texts(reader.turns[-1][:1]))


async def test_given_a_summary_that_something_critical_cuts_when_the_goal_ends_then_what_it_took_is_counted() -> None:
    stuck, log, gateway = Stuck(), InMemorySessionLog(), SignalGateway()
    run = runner(Reader(20), stuck, log, signals=gateway).run_streaming(DEMAND, session_id="s")
    running = asyncio.ensure_future(events_of(run))
    await stuck.asked.wait()
    for urgency in ("high", "critical"):
        gateway.ingest(RuntimeSignal("alarm", {}, "clock", "alert", urgency))

    events = await running

    assert "something urgent came" in only(NoticeEvent, events)[0].message
    events_in_log = [decode_record(line).event for line in await log.read("s")]
    (cut,) = only(Summarized, events_in_log)
    assert (cut.fault is not None, cut.usage.input > 1_000, cut.usage.output) == (True, True, 0)


async def test_given_a_summarizer_that_never_stops_talking_when_asked_then_it_is_cut_off() -> None:
    reader, endless, log = Reader(20), Endless(), InMemorySessionLog()

    events = await events_of(runner(reader, endless, log).run_streaming(DEMAND, session_id="s"))

    assert done_of(events).status == "completed"
    assert only(NoticeEvent, events) == []
    assert 0 < endless.said < 100 * len(reader.turns)
    assert "word word" in "\n".join(user_texts(reader.turns[-1][:1]))


async def test_given_a_summarizer_deaf_to_cancellation_when_its_time_is_up_then_the_run_goes_on_without_it() -> None:
    deaf, log = Deaf(), InMemorySessionLog()
    with ManualClock() as clock:
        running = asyncio.ensure_future(events_of(runner(Reader(20), deaf, log).run_streaming(DEMAND, session_id="s")))
        while not running.done():
            await asyncio.wait({running, asyncio.ensure_future(deaf.asked.wait())}, return_when="FIRST_COMPLETED")
            deaf.asked.clear()
            await clock.advance(SUMMARY_SECONDS)
        events = await running
    deaf.over.set()

    assert done_of(events).status == "completed"
    assert {notice.code for notice in only(NoticeEvent, events)} == {"summary_failed"}


async def test_given_an_interrupt_while_a_summary_is_written_when_resumed_then_the_goal_is_done() -> None:
    stuck, log = Stuck(), InMemorySessionLog()
    first = runner(Reader(40), stuck, log)
    running = asyncio.ensure_future(events_of(first.run_streaming(DEMAND, session_id="s")))
    await stuck.asked.wait()

    first.interrupt("s")
    ended = done_of(await running).status
    resumed = await events_of(runner(Reader(0), Script(written("Seen.")), log).resume("s"))

    assert (ended, done_of(resumed).status) == ("user_abort", "completed")


async def test_given_a_secret_in_a_summary_when_recorded_then_it_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY)
    reader, log = Reader(40), InMemorySessionLog()

    await events_of(runner(reader, Script(written(f"The key is {KEY}.")), log).run_streaming(DEMAND, session_id="s"))

    assert KEY.encode() not in b"".join(await log.read("s"))
    assert f"The key is {HIDDEN}." in "\n".join(user_texts(reader.turns[-1][:1]))


async def test_given_a_process_killed_while_a_summary_is_written_when_resumed_then_nothing_is_lost(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SOURCES), str(Path(__file__).parent)))}
    command = [sys.executable, "-c", MORTAL, str(tmp_path)]
    died = await asyncio.to_thread(subprocess.run, command, env=environment, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL
    log, reader, script = FileSessionLog(tmp_path), Reader(0), Script(written("Seen."))
    before = await kinds_of(log, "s")

    events = await events_of(runner(reader, script, log).resume("s"))

    after = await kinds_of(log, "s")
    assert (before[-1], after[: len(before)]) == ("compressed", before)
    assert "summarized" in after
    assert done_of(events).status == "completed"
    opening = "\n".join(user_texts(reader.turns[0][:1]))
    assert "> Seen." in opening
    assert DEMAND in opening
    assert replay(await log.read("s")).divergence is None
