"""What the user says while a run goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from doubles import Reply, Script, add, call, calls, done_of, events_of, only, result_texts, say, user_texts

from deepstrike import (
    ConfigError,
    InMemorySessionLog,
    LocalExecutionPlane,
    RuntimeOptions,
    RuntimeRunner,
    RuntimeSignal,
    SessionError,
    SignalEvent,
    TextDelta,
    tool,
)
from deepstrike.errors import QueueFull, UnknownSession
from deepstrike.providers.base import LLMProvider, ModelEvent, ModelRequest


class Gated:
    """A provider whose first reply waits until it is let go."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        if len(self.requests) == 1:
            self.begun.set()
            await self.go.wait()
        for event in self.replies[min(len(self.requests), len(self.replies)) - 1]:
            yield event


def runner_around(provider: LLMProvider, log: InMemorySessionLog | None = None) -> RuntimeRunner:
    plane = LocalExecutionPlane().register(add)
    return RuntimeRunner(RuntimeOptions(provider=provider, session_log=log, execution_plane=plane))


async def test_given_a_model_that_writes_its_answer_when_the_user_speaks_then_the_run_goes_on_with_that() -> None:
    model = Gated(say("Good morning."), say("Guten Morgen."))
    runner = runner_around(model)
    task = asyncio.create_task(events_of(runner.run_streaming("Greet.", session_id="s")))
    await model.begun.wait()

    heard = await runner.send("s", "In German.\nPlease.")
    model.go.set()
    events = await task

    assert heard is True
    assert user_texts(list(model.requests[1].turns)) == ["Greet.", "The user says: In German.\nPlease."]
    assert [event.delta for event in only(TextDelta, events)] == ["Good morning.", "Guten Morgen."]
    (told,) = only(SignalEvent, events)
    assert told.signal == RuntimeSignal("message", {"text": "In German.\nPlease."}, "user", "message", "high")
    assert (done_of(events).status, done_of(events).iterations) == ("completed", 2)


async def test_given_a_model_that_asks_for_calls_when_the_user_has_spoken_then_none_of_them_is_begun() -> None:
    model = Gated(calls(call("add", '{"x": 1, "y": 2}')), say("Not then."))
    runner = runner_around(model)
    task = asyncio.create_task(events_of(runner.run_streaming("Add.", session_id="s")))
    await model.begun.wait()

    await runner.send("s", "Do not.")
    await asyncio.sleep(0)
    model.go.set()
    await task

    assert result_texts(list(model.requests[1].turns)) == ["not run: superseded"]


async def test_given_a_tool_that_runs_when_the_user_speaks_from_a_thread_then_the_model_reads_it_next() -> None:
    runner: RuntimeRunner

    @tool
    def ask_around() -> str:
        """Ask around."""
        worker = threading.Thread(target=lambda: asyncio.run(runner.send("s", "Hurry.")))
        worker.start()
        worker.join()
        return "asked"

    model = Script(calls(call("ask_around")), say("ok"))
    runner = RuntimeRunner(RuntimeOptions(provider=model, execution_plane=LocalExecutionPlane().register(ask_around)))
    await runner.run("Go.", session_id="s")

    assert (result_texts(model.turns[1]), user_texts(model.turns[1])) == (["asked"], ["Go.", "The user says: Hurry."])


async def test_given_a_session_without_a_run_when_the_user_speaks_then_its_next_run_hears_it_once() -> None:
    model = Script(say("ok"))
    runner = runner_around(model)
    await runner.run("One.", session_id="s")

    heard = await runner.send("s", "Mind the gap.")
    await runner.run("Other.", session_id="other")
    await runner.run("Two.", session_id="s")
    await runner.run("Three.", session_id="s")

    assert heard is False
    assert "The user says: Mind the gap." not in user_texts(model.turns[1])
    assert user_texts(model.turns[2]) == ["One.", "Two.", "The user says: Mind the gap."]
    assert user_texts(model.turns[3]).count("The user says: Mind the gap.") == 1


async def test_given_a_run_that_is_interrupted_before_it_hears_when_resumed_then_the_word_is_there() -> None:
    model = Gated(say("Good morning."), say("Guten Morgen."))
    runner = runner_around(model)
    task = asyncio.create_task(events_of(runner.run_streaming("Greet.", session_id="s")))
    await model.begun.wait()

    await runner.send("s", "In German.")
    runner.interrupt("s")
    events = await task
    resumed = await runner.resume("s")

    assert (done_of(events).status, resumed.status) == ("user_abort", "completed")
    assert user_texts(list(model.requests[1].turns)).count("The user says: In German.") == 1


async def test_given_an_id_that_no_session_has_when_the_user_speaks_then_it_is_unknown() -> None:
    with pytest.raises(UnknownSession):
        await runner_around(Script(say("ok"))).send("nobody", "Hello?")


@pytest.mark.parametrize(
    ("text", "said"), [("  ", "not empty"), (7, "not empty"), ("a" * 70_000, "at most 61440 bytes")]
)
async def test_given_what_is_no_message_when_sent_then_the_error_says_why(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await runner_around(Script(say("ok"))).send("s", text)


async def test_given_a_hundred_words_that_wait_when_another_comes_then_it_is_refused() -> None:
    runner = runner_around(Script(say("ok")))
    await runner.run("One.", session_id="s")
    for number in range(100):
        await runner.send("s", f"Word {number}.")

    with pytest.raises(QueueFull, match="100 messages wait"):
        await runner.send("s", "One more.")


async def test_given_a_live_run_of_another_runner_when_the_user_speaks_here_then_the_session_is_left_alone() -> None:
    log, model = InMemorySessionLog(), Gated(say("ok"))
    task = asyncio.create_task(events_of(runner_around(model, log).run_streaming("Go.", session_id="s")))
    await model.begun.wait()

    other = runner_around(Script(say("ok")), log)
    heard = await other.send("s", "Hello?")
    model.go.set()
    await task

    assert heard is False
    with pytest.raises(SessionError):
        await other.send("t", "Hello?")
