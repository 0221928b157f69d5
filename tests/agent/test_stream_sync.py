"""Events for a plain `for`: leaving it stops the run, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import BaseModel

from deepstrike import Agent, ModelRequest, RunFailed, ScriptedProvider, TextDelta
from deepstrike.blocking import iterate_on
from deepstrike.errors import ConfigError, Overloaded
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.stream import DoneEvent, ErrorEvent, UsageEvent


class Endless:
    """Says one word and waits for ever; tells when it was let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.left = threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.begun += 1
        try:
            yield TextDelta("word")
            await asyncio.Event().wait()
            yield Finish("stop")
        finally:
            self.left.set()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread for thread in threading.enumerate() if thread.name == "deepstrike-stream-sync"] == []


def test_given_a_goal_when_it_is_streamed_then_every_event_comes_in_order() -> None:
    assert list(Agent(ScriptedProvider(["hi"])).stream_sync("go", session_id=None))[:-1] == [
        TextDelta("hi"),
        UsageEvent(0, 0),
    ]


def test_given_a_model_that_fails_when_it_is_streamed_then_the_events_say_so() -> None:
    *_, fault, done = Agent(ScriptedProvider([Overloaded("busy")])).stream_sync("go")

    assert isinstance(fault, ErrorEvent)
    assert isinstance(done, DoneEvent)
    assert (fault.code, done.status) == ("overloaded", "error")


def test_given_a_stream_when_the_loop_is_left_then_the_model_is_let_go_and_the_session_goes_on() -> None:
    model = Endless()
    agent = Agent(model)
    for event in agent.stream_sync("go"):
        assert event == TextDelta("word")
        break
    left = model.left.is_set()
    [session] = asyncio.run(agent.runner.sessions())

    assert left
    assert len(session) == 16


def test_given_a_stream_when_the_caller_raises_then_the_model_is_let_go() -> None:
    model = Endless()
    stream = Agent(model).stream_sync("go")
    next(stream)

    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt())

    assert model.left.is_set()
    assert list(stream) == []


def test_given_a_stream_when_nothing_is_asked_of_it_then_nothing_starts() -> None:
    model = Endless()
    stream = Agent(model).stream_sync("go")
    stream.close()

    assert model.begun == 0


def test_given_a_wrong_goal_when_it_is_to_be_streamed_then_it_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="the goal is empty"):
        Agent("demo").stream_sync("")


async def test_given_a_running_loop_when_a_goal_is_streamed_then_it_works_and_sees_the_context() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    async def look() -> str:
        seen.append(who.get())
        return "ok"

    who.set("me")
    model = ScriptedProvider([[ToolCall("c1", "look", "{}"), Finish("tool_calls")], "done"])
    types = [event.type for event in Agent(model, tools=[look]).stream_sync("go")]

    assert types == ["usage", "tool_call", "tool_result", "text_delta", "usage", "done"]
    assert seen == ["me"]


def test_given_a_process_that_ends_in_the_middle_when_it_exits_then_it_does_not_wait() -> None:
    code = (
        "import asyncio\nfrom deepstrike import Agent, TextDelta\n"
        "class Endless:\n"
        "    async def stream(self, request):\n"
        "        yield TextDelta('word')\n"
        "        await asyncio.Event().wait()\n"
        "stream = Agent(Endless()).stream_sync('go')\n"
        "print(next(stream).delta)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, "word\n", "")


def test_given_a_stream_when_its_own_thread_closes_it_as_the_collector_may_then_nothing_waits_for_itself() -> None:
    handed, closed = threading.Event(), threading.Event()

    def close() -> None:
        handed.wait(10)
        stream.close()
        closed.set()

    class Ones:
        async def __anext__(self) -> int:
            asyncio.get_running_loop().call_later(0, close)
            return 1

        async def aclose(self) -> None:
            return

    stream = iterate_on(Ones)
    assert next(stream) == 1
    [thread] = [each for each in threading.enumerate() if each.name == "deepstrike-stream-sync"]
    handed.set()
    thread.join(10)

    assert closed.is_set()
    assert not thread.is_alive()


class Sum(BaseModel):
    """A form with two fields."""

    what: str
    value: int


def test_given_a_form_when_the_answer_is_written_then_a_plain_for_sees_it_grow_to_its_value() -> None:
    pieces = [TextDelta(piece) for piece in ('{"what": "17', ' + 28", ', '"value": 45}')]
    agent = Agent(ScriptedProvider([[*pieces, Finish("stop")]]), output_type=Sum)

    seen = list(agent.drafts_sync("go"))

    assert seen == [
        {"what": "17"},
        {"what": "17 + 28"},
        {"what": "17 + 28", "value": 45},
        Sum(what="17 + 28", value=45),
    ]


def test_given_drafts_when_the_loop_is_left_then_the_model_is_let_go() -> None:
    class Writing(Endless):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta('{"what": "x')
            async for event in super().stream(request):
                yield event

    model = Writing()
    for draft in Agent(model, output_type=Sum).drafts_sync("go"):
        assert draft == {"what": "x"}
        break

    assert model.left.wait(5)


def test_given_no_form_or_no_value_when_drafts_are_asked_for_then_it_is_told() -> None:
    with pytest.raises(ConfigError, match="output_type"):
        Agent("demo").drafts_sync("go")
    with pytest.raises(RunFailed, match="not valid"):
        list(Agent(ScriptedProvider(["no"], repeat_last=True), output_type=Sum).drafts_sync("go"))
