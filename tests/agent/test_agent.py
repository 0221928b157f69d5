"""The short form: tools of every kind, sessions that are kept or not, and everything that is asked of it wrongly."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from deepstrike import (
    Agent,
    ConfigError,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    ModelRequest,
    RunFailed,
    RuntimeOptions,
    ScriptedProvider,
    SqliteSessionLog,
    TextDelta,
    mcp,
    tool,
)
from deepstrike import agent as agent_module
from deepstrike.agent import ToolSource
from deepstrike.errors import Overloaded, UnknownSession
from deepstrike.providers import choice
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.providers.choice import KEYS
from deepstrike.sessions.places import default_path

MCP_SERVER = Path(__file__).parents[1] / "execution" / "mcp_real_server.py"


@pytest.fixture(autouse=True)
def a_home_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEEPSTRIKE_HOME", str(tmp_path / "home"))
    for name in (*KEYS, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


ADDS: list[ModelEvent] = [ToolCall("c1", "add", '{"a": 1, "b": 2}'), Finish("tool_calls")]


def adding(*then: str) -> ScriptedProvider:
    """Calls `add` once, then says the rest."""
    return ScriptedProvider([[ToolCall("c1", "add", '{"x": 17, "y": 28}'), Finish("tool_calls")], *then])


def test_given_a_plain_function_when_a_goal_runs_then_the_model_gets_its_result() -> None:
    model = adding("It is 45.")

    result = Agent(model, tools=[add], instructions="Be exact.").run_sync("What is 17 + 28?")

    assert (result.text, result.status, result.iterations) == ("It is 45.", "completed", 2)
    assert model.requests[0].system_stable == "Be exact."
    assert [spec.description for spec in model.requests[0].tools if spec.name == "add"] == ["Add two numbers."]


def test_given_tools_of_every_kind_when_the_model_is_asked_then_all_are_offered() -> None:
    @dataclass
    class Point:
        x: int

    def shift(point: Point) -> Point:  # its postponed annotation is known only here
        return Point(point.x + 1)

    @tool(name="double")
    def twice(x: int) -> int:
        return 2 * x

    plane = LocalExecutionPlane().register(tool(name="half")(lambda: 1))
    model = ScriptedProvider(["done"])
    sources: list[ToolSource] = [shift, twice, plane]

    Agent(model, tools=iter(sources)).run_sync("go")

    offered = {spec.name for spec in model.requests[0].tools}
    assert offered >= {"shift", "double", "half"}


def test_given_one_plane_when_an_agent_is_made_then_it_is_used_as_it_is() -> None:
    plane = LocalExecutionPlane().register(add)
    model = adding("45")
    agent = Agent(model, tools=[plane])
    plane.register(tool(name="late")(lambda: 1))

    agent.run_sync("17 + 28?")

    assert {"add", "late"} <= {spec.name for spec in model.requests[0].tools}


def test_given_an_mcp_server_when_goals_run_in_two_loops_then_its_tools_answer_in_both() -> None:
    pytest.importorskip("mcp")
    agent = Agent(ScriptedProvider([ADDS, "3"] * 2), tools=[mcp([sys.executable, str(MCP_SERVER), "stdio"])])

    results = [agent.run_sync("1 + 2?").text for _ in range(2)]

    assert results == ["3", "3"]


async def test_given_an_mcp_server_when_the_agent_is_left_then_it_can_be_used_again() -> None:
    pytest.importorskip("mcp")
    agent = Agent(ScriptedProvider([ADDS, "3"] * 2), tools=[mcp([sys.executable, str(MCP_SERVER), "stdio"])])
    async with agent:
        assert (await agent.run("1 + 2?")).text == "3"
    async with agent:
        assert (await agent.run("1 + 2?")).text == "3"


def test_given_an_agent_as_a_tool_when_it_is_called_then_it_works_within_the_run_and_its_answer_is_the_result() -> None:
    clerk = Agent(adding("It is 45."), tools=[add], instructions="Be exact.")
    asks = ScriptedProvider(
        [[ToolCall("c1", "clerk", '{"task": "17 + 28?"}'), Finish("tool_calls")], "The clerk says 45."]
    )
    boss = Agent(asks, tools=[clerk.as_tool("clerk", "Does sums.")])

    events = list(boss.stream_sync("What is 17 + 28?", session_id="job-1"))

    assert [event.content for event in events if event.type == "tool_result"] == ["It is 45."]
    inner = [event.event.type for event in events if event.type == "agent"]
    assert inner.count("tool_call") == 1
    assert boss.resume_sync("job-1").text == "The clerk says 45."


def test_given_a_wrong_name_or_description_when_an_agent_is_to_be_a_tool_then_it_is_told() -> None:
    for name, description in (("", "Does sums."), ("sums", " "), (3, "Does sums."), ("sums", 3)):
        with pytest.raises(ConfigError):
            Agent("demo").as_tool(name, description)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keywords", "error", "says"),
    [
        ({"tools": "add"}, ConfigError, r"tools must be a list of tools, as in tools=\[add\], not str"),
        ({"tools": 3}, ConfigError, "not int"),
        ({"tools": [3]}, ConfigError, "a tool is made of a function, not of 3"),
        ({"tools": [LocalExecutionPlane]}, ConfigError, "LocalExecutionPlane is a class"),
        ({"tools": [add, add]}, ConfigError, "already a tool named 'add'"),
        ({"max_turn": 3}, TypeError, "no keyword 'max_turn'; did you mean 'max_turns'"),
        ({"provider": "x"}, ConfigError, r"provider as the model: Agent\(provider\)"),
        ({"system_prompt": "x"}, ConfigError, "system_prompt as the instructions: instructions=…"),
        ({"execution_plane": "x"}, ConfigError, r"execution_plane as one of the tools: tools=\[plane\]"),
        ({"instructions": 3}, ConfigError, "system_prompt must be a text"),
        ({"max_turns": 0}, ConfigError, "max_turns must be at least 1"),
        ({"durability": "never"}, ConfigError, 'durability must be "os", "disk" or None'),
        ({"durability": "disk", "session_log": InMemorySessionLog()}, ConfigError, "needs a session log on disk"),
        ({"tools": [Agent("demo")]}, ConfigError, r"tools=\[agent\.as_tool\("),
        ({"model": 3}, ConfigError, "model must be an id, .* not int"),
        ({"model": ScriptedProvider}, ConfigError, "model must be an id, .* not the class ScriptedProvider"),
        ({"model": "opnai:x"}, ConfigError, "did you mean 'openai:x'"),
        ({"model": "openai:x"}, ConfigError, "set OPENAI_API_KEY"),
    ],
)
def test_given_something_wrong_when_an_agent_is_made_then_it_is_told_at_once(
    keywords: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Agent(**{"model": "demo", **keywords})  # type: ignore[arg-type]


def test_given_the_options_of_a_runner_when_compared_with_an_agents_then_none_is_missing() -> None:
    taken = {field.name for field in fields(RuntimeOptions)} - {"provider", "execution_plane", "system_prompt"}

    assert set(agent_module.AgentOptions.__annotations__) == taken


def test_given_no_model_when_nothing_is_configured_then_it_is_the_embedded_one_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "choose", lambda model: choice.choose(model, None, list))
    with caplog.at_level(logging.WARNING, "deepstrike"):
        agent = Agent(tools=[add])

    assert caplog.messages == [
        "model: demo, as no key is set and no model server runs on this machine; it is no language model; "
        "name one to choose"
    ]
    assert (agent.model, repr(agent)) == ("demo", "Agent('demo')")
    assert "45" in agent.run_sync("What is 17 + 28?").text


def test_given_no_model_when_a_key_is_configured_then_its_vendor_is_taken_and_the_key_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")

    agent = Agent()

    assert caplog.messages == [
        "model: openai's default model (gpt-5-mini), as OPENAI_API_KEY is set; name one to choose"
    ]
    assert agent.model == "gpt-5-mini"


def test_given_a_model_when_it_is_named_then_the_log_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Mute:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield Finish("stop")

    assert [Agent("demo").model, Agent("ollama:qwen3:4b").model, Agent(Mute()).model] == ["demo", "qwen3:4b", "Mute"]
    assert caplog.messages == []


def test_given_no_session_id_when_goals_run_then_nothing_is_written_and_the_session_goes_on_in_memory(
    tmp_path: Path,
) -> None:
    model = ScriptedProvider(["Noted.", "Chartreuse."])
    agent = Agent(model)

    first = agent.run_sync("I like chartreuse.")
    second = agent.run_sync("What do I like?", session_id=first.session_id)

    assert second.session_id == first.session_id
    assert agent.runner is agent.runner_of(first.session_id) is not agent.runner_of("job-1")
    assert len(model.requests[1].turns) == 3
    assert list(tmp_path.iterdir()) == []


def test_given_a_session_id_when_another_agent_goes_on_then_the_session_is_there() -> None:
    Agent(ScriptedProvider(["Noted."])).run_sync("I like chartreuse.", session_id="job-1")
    model = ScriptedProvider(["Chartreuse."])

    later = Agent(model).run_sync("What do I like?", session_id="job-1")

    assert (later.text, len(model.requests[0].turns)) == ("Chartreuse.", 3)
    assert asyncio.run(SqliteSessionLog(default_path()).sessions()) == ["job-1"]


def test_given_a_log_of_ones_own_when_goals_run_then_all_sessions_are_there_and_none_at_home(tmp_path: Path) -> None:
    log = InMemorySessionLog()
    agent = Agent(ScriptedProvider(["a", "b"]), session_log=log)

    unnamed = agent.run_sync("one").session_id
    agent.run_sync("two", session_id="job-1")

    assert asyncio.run(log.sessions()) == [unnamed, "job-1"]
    assert list(tmp_path.iterdir()) == []


def test_given_that_sessions_are_to_outlive_the_machine_when_a_named_one_runs_then_its_log_flushes() -> None:
    agent = Agent(ScriptedProvider(["a", "b"]), durability="disk")

    assert [agent.run_sync("one").text, agent.run_sync("two", session_id="job-1").text] == ["a", "b"]


@pytest.mark.parametrize("session_id", [None, "bill"])
async def test_given_a_question_when_nobody_is_there_then_it_waits_and_is_answered_later(
    session_id: str | None,
) -> None:
    model = adding("It is 45.")
    agent = Agent(model, tools=[add], governance=Governance("ask"))

    waiting = await agent.run("17 + 28?", session_id=session_id)
    [request] = waiting.pending
    again = await agent.pending(waiting.session_id)
    done = await agent.resume(waiting.session_id, {request.request_id: True})

    assert (waiting.status, request.kind, request.name) == ("suspended", "approval", "add")
    assert again == (request,)
    assert (done.status, done.text) == ("completed", "It is 45.")


def test_given_a_question_when_another_agent_answers_it_then_the_goal_is_done() -> None:
    rules = Governance("ask")
    waiting = Agent(adding(), tools=[add], governance=rules).run_sync("17 + 28?", session_id="bill")

    later = Agent(ScriptedProvider(["It is 45."]), tools=[add], governance=rules)
    done = later.resume_sync("bill", {request.request_id: True for request in waiting.pending})

    assert (done.status, done.text) == ("completed", "It is 45.")


def test_given_no_such_session_when_it_is_resumed_then_it_is_said() -> None:
    with pytest.raises(UnknownSession, match="nobody"):
        Agent("demo").resume_sync("nobody")


def test_given_a_model_that_fails_when_a_goal_runs_then_the_error_is_the_runners() -> None:
    agent = Agent(ScriptedProvider([Overloaded("busy")]))

    with pytest.raises(RunFailed) as raised:
        agent.run_sync("go")

    assert (raised.value.code, raised.value.result.status) == ("overloaded", "error")


async def test_given_a_running_loop_when_run_sync_is_called_then_it_works_and_sees_the_context() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    def look() -> str:
        seen.append(who.get())
        return "ok"

    who.set("me")
    model = ScriptedProvider([[ToolCall("c1", "look", "{}"), Finish("tool_calls")], "done"])

    assert Agent(model, tools=[look]).run_sync("go").text == "done"
    assert seen == ["me"]


async def test_given_runs_of_both_kinds_when_interrupted_then_both_end() -> None:
    class Endless:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("a")
            await asyncio.Event().wait()
            yield Finish("stop")

    agent = Agent(Endless())
    runs = [agent.run_streaming("go"), agent.run_streaming("go", session_id="job-1")]
    events = [aiter(run) for run in runs]
    for each in events:
        await anext(each)

    agent.interrupt()

    assert [(await run).status for run in runs] == ["user_abort", "user_abort"]


async def test_given_no_home_when_a_run_is_to_be_kept_then_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DEEPSTRIKE_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    agent = Agent("demo")

    with pytest.raises(ConfigError, match="name one with DEEPSTRIKE_HOME"):
        agent.run("go", session_id="job-1")
    assert (await agent.run("hello")).status == "completed"
