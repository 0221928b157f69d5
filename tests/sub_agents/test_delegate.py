"""Sub-agents within a run: what they get, what is seen of them, what comes back."""

from __future__ import annotations

import asyncio

import pytest
from families import Cast, Play, config_of, delegates, of_agents, results_of, runner_with

from deepstrike import (
    AgentEvent,
    ConfigError,
    DoneEvent,
    Governance,
    InMemorySessionLog,
    ProviderError,
    RuntimeOptions,
    TextDelta,
    ToolCallEvent,
    ToolContext,
    ToolResultEvent,
    UsageEvent,
    tool,
)
from deepstrike.agents import AgentRunSpec, SubAgents
from deepstrike.providers.base import ToolCall
from deepstrike.wire.agents import Agents, Parent


@tool
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


@tool
async def look(context: ToolContext) -> str:
    """Look."""
    return f"{context.session_id} {context.deps}"


async def test_a_sub_agent_does_its_task_in_a_session_of_its_own() -> None:
    log = InMemorySessionLog()
    model = Cast(
        {
            "go": [[delegates("add them", "adder", ["add"])], lambda request: f"so {results_of(request)[0]}"],
            "add them": [[ToolCall("c", "add", '{"x":17,"y":28}')], "45"],
        }
    )
    runner = runner_with(model, add, look, log=log)
    events = [event async for event in runner.run_streaming("go", session_id="s")]
    assert of_agents(events) == {
        ("adder-2",): [
            UsageEvent(10, 1),
            ToolCallEvent("c", "add", {"x": 17, "y": 28}),
            ToolResultEvent("c", "45", False, "add"),
            TextDelta("45"),
            UsageEvent(10, 1),
            DoneEvent(2, 22, "completed", UsageEvent(20, 2), "s/2"),
        ]
    }
    assert events[-1] == DoneEvent(4, 44, "completed", UsageEvent(40, 4), "s")
    assert sorted(await runner.sessions()) == ["s", "s/2"]
    assert [spec.name for spec in model.asked("add them")[0].tools] == ["add", "delegate", "recall", "update_plan"]
    child = await config_of(log, "s/2")
    assert child.agents == Agents(True, 2, 8, Parent("s", ("adder-2",)))
    assert child.system.endswith("Your role: adder")


async def test_a_role_brings_its_own_prompt_tools_and_limits() -> None:
    log = InMemorySessionLog()
    model = Cast({"go": [[delegates("sum")], "done"], "sum": ["45"]})
    spec = AgentRunSpec("adder", description="adds", tools=["add"], system_prompt="You add.", max_turns=3)
    result = await runner_with(model, add, look, log=log, sub_agents=[spec]).run("go", session_id="s")
    assert result.text == "done"
    child = await config_of(log, "s/2")
    assert (child.system, [tool.name for tool in child.tools], child.limits.max_turns) == ("You add.", ["add"], 3)
    assert "adder: adds" in model.asked("go")[0].system_knowledge


async def test_a_long_answer_comes_by_reference() -> None:
    model = Cast({"go": [[delegates("tell")], "ok"], "tell": ["word " * 40_000]})
    runner = runner_with(model)
    events = [event async for event in runner.run_streaming("go")]
    (result,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert (result.is_error, "recall(" in result.content, len(result.content) < 60_000) == (False, True, True)


async def test_deps_reach_the_tools_of_sub_agents() -> None:
    model = Cast(
        {"go": [[delegates("look")], "ok"], "look": [[ToolCall("c", "look", "{}")], lambda r: results_of(r)[0]]}
    )
    events = [event async for event in runner_with(model, look).run_streaming("go", session_id="s", deps="d")]
    assert [event.content for event in events if isinstance(event, ToolResultEvent)] == ["s/2 d"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (delegates("t", "addr"), "there is no role 'addr'; available: adder, looker"),
        (delegates("t"), "say which role; available: adder, looker"),
        (
            delegates("t", "adder", ["ad"]),
            "there is no tool 'ad'; available: add. A sub-agent gets only tools of its parent",
        ),
        (delegates("t", "adder", ["look"]), "there is no tool 'look'; available: add. A sub-agent gets only"),
        (delegates(""), "task"),
    ],
)
async def test_what_does_not_fit_is_an_error_that_names_what_does(call: ToolCall, said: str) -> None:
    specs = [AgentRunSpec("adder", tools=["add"]), AgentRunSpec("looker")]
    model = Cast({"go": [[call], lambda request: results_of(request)[0]]})
    result = await runner_with(model, add, look, sub_agents=specs).run("go")
    assert said in result.text


async def test_a_child_that_fails_takes_nobody_with_it() -> None:
    """Case SUB-03."""
    fails = [delegates("fail", call_id="a"), delegates("spin", call_id="b"), delegates("good", call_id="c")]
    spins: Play = [[ToolCall(f"c{n}", "add", f'{{"x":{n},"y":0}}')] for n in range(9)]
    model = Cast({"go": [fails, "all told"], "fail": [ProviderError("no")], "spin": spins, "good": ["fine"]})
    events = [event async for event in runner_with(model, add).run_streaming("go")]
    results = [event for event in events if isinstance(event, ToolResultEvent)]
    assert sorted((event.call_id, event.is_error) for event in results) == [("a", True), ("b", True), ("c", False)]
    texts = {event.call_id: event.content for event in results}
    assert texts["a"] == "the sub-agent did not complete its task (error): no"
    assert texts["b"].startswith("the sub-agent did not complete its task (max_turns): limit reached (max_turns = 6)")
    assert (texts["c"], events[-1].type) == ("fine", "done")


async def test_a_child_that_always_spawns_comes_to_an_end() -> None:
    """Case SUB-01."""
    model = Cast({"go": [[delegates("go", call_id=f"c{n}")] for n in range(100)]})
    result = await runner_with(model).run("go")
    assert (result.status, len(model.requests) <= 25) == ("max_turns", True)


async def test_depth_and_number_are_bounded_and_the_model_is_told() -> None:
    wide = [delegates(f"t{n}", call_id=f"c{n}") for n in range(3)]
    deep: dict[str, Play] = {"t0": [[delegates("below")], lambda request: results_of(request)[0]], "t1": ["one"]}
    model = Cast({"go": [wide, lambda request: "|".join(results_of(request))], **deep})
    bounds = SubAgents(max_depth=1, max_children=2)
    result = await runner_with(model, sub_agents=bounds).run("go")
    below, one, third = result.text.split("|")
    assert below == "not run: agents are nested 1 deep already, which is as deep as they may; do it yourself"
    assert (one, third[:40]) == ("one", "not run: 2 sub-agents were put to work f")
    assert "delegate" not in [spec.name for spec in model.asked("t0")[0].tools]


async def test_events_and_ids_of_parallel_children_do_not_mix() -> None:
    """Case SUB-06."""
    both = [delegates("one", call_id="a"), delegates("two", call_id="b")]
    model = Cast(
        {
            "go": [both, "ok"],
            "one": [[ToolCall("call_0", "add", '{"x":1,"y":0}')], "1"],
            "two": [[ToolCall("call_0", "add", '{"x":2,"y":0}')], "2"],
        }
    )
    events = [event async for event in runner_with(model, add).run_streaming("go")]
    assert len([event for event in events if isinstance(event, DoneEvent)]) == 1
    for path, own in of_agents(events).items():
        content = [event.content for event in own if isinstance(event, ToolResultEvent)]
        said = [event.delta for event in own if isinstance(event, TextDelta)]
        assert content == said, path
        assert own[-1].type == "done"
    results = {event.call_id: event.content for event in events if isinstance(event, ToolResultEvent)}
    assert results == {"a": "1", "b": "2"}


async def test_children_run_in_parallel_within_the_limit() -> None:
    running, most = 0, 0

    @tool
    async def work() -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1
        return "worked"

    def model() -> Cast:
        tasks = [f"t{n}" for n in range(4)]
        play: dict[str, Play] = {task: [[ToolCall("c", "work", "{}")], "ok"] for task in tasks}
        return Cast({"go": [[delegates(task, call_id=task) for task in tasks], "ok"], **play})

    await runner_with(model(), work).run("go")
    assert most == 4
    most = 0
    await runner_with(model(), work, max_parallel_tools=2).run("go")
    assert most == 2


async def test_the_tree_stays_within_the_limits_of_its_root() -> None:
    def asks(request: object) -> list[ToolCall]:
        return [ToolCall(f"c{len(model.requests)}", "add", f'{{"x":{len(model.requests)},"y":1}}')]

    tree = [delegates("a", call_id="a"), delegates("b", call_id="b")]
    model = Cast({"go": [tree, "ok"], "a": [asks] * 30, "b": [asks] * 30})
    result = await runner_with(model, add, max_turns=10).run("go")
    assert (result.status, result.iterations, len(model.requests)) == ("completed", 8, 8)


async def test_governance_holds_for_sub_agents_and_their_windows_count_together() -> None:
    rules = Governance("allow").set_rate_limit("add", max_calls=1, window_ms=60_000).block_tool("look")
    both = [delegates("one", call_id="a"), delegates("two", call_id="b")]
    play: Play = [
        [ToolCall("c", "add", '{"x":1,"y":0}'), ToolCall("d", "look", "{}")],
        lambda r: " / ".join(results_of(r)),
    ]
    model = Cast({"go": [both, lambda r: "\n".join(results_of(r))], "one": play, "two": play})
    result = await runner_with(model, add, look, governance=rules).run("go")
    assert sorted(line.split(":")[0] for line in result.text.splitlines()) == ["1 / denied by veto", "rate_limit"]
    assert result.text.count("denied by veto") == 2


async def test_delegate_is_judged_like_any_tool() -> None:
    model = Cast({"go": [[delegates("t")], lambda request: results_of(request)[0]]})
    result = await runner_with(model, add, governance=Governance("deny")).run("go")
    assert result.text.startswith("denied by permission")


async def test_a_grandchild_gets_no_tool_that_its_parent_was_not_left() -> None:
    model = Cast(
        {
            "go": [[delegates("child", tools=["add"])], "ok"],
            "child": [[delegates("grandchild")], "ok"],
            "grandchild": [[ToolCall("c", "look", "{}")], lambda request: results_of(request)[0]],
        }
    )
    events = [event async for event in runner_with(model, add, look).run_streaming("go")]
    refused = [
        event.event.content
        for event in events
        if isinstance(event, AgentEvent) and len(event.path) == 2 and isinstance(event.event, ToolResultEvent)
    ]
    assert refused == ["there is no tool 'look'; available: add; the runtime's own: delegate, recall, update_plan"]


async def test_the_session_of_a_sub_agent_is_not_gone_on_with_by_itself() -> None:
    model = Cast({"go": [[delegates("t")], "ok"], "t": ["done"]})
    runner = runner_with(model)
    await runner.run("go", session_id="s")
    for run in (runner.resume("s/2"), runner.run("more", session_id="s/2")):
        with pytest.raises(ConfigError, match="that of a sub-agent of 's'"):
            await run


async def test_a_session_that_is_in_the_way_is_not_touched() -> None:
    model = Cast({"mine": ["hi"], "go": [[delegates("t")], lambda request: results_of(request)[0]], "t": ["done"]})
    runner = runner_with(model)
    await runner.run("mine", session_id="s/2")
    assert "is there already" in (await runner.run("go", session_id="s")).text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("researcher", "sub_agents must be True, a list of AgentRunSpec"),
        ([], "an empty list"),
        (["researcher"], r"takes AgentRunSpec\(role"),
        ([AgentRunSpec("a"), AgentRunSpec("a")], "two sub-agents have the role 'a'"),
    ],
)
def test_wrong_sub_agents_are_refused_when_the_options_are_built(wrong: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        RuntimeOptions(provider=Cast({}), sub_agents=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AgentRunSpec("a b"),
        lambda: AgentRunSpec("a", task=" "),
        lambda: AgentRunSpec("a", tools="add"),
        lambda: SubAgents(max_depth=0),
        lambda: runner_with(Cast({}), sub_agents=[AgentRunSpec("a", max_turns=0)]),
        lambda: runner_with(Cast({}), add, sub_agents=[AgentRunSpec("a", tools=["ad"])]).run("go"),
    ],
)
def test_a_wrong_role_is_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ConfigError):
        wrong()


async def test_spawn_is_a_run_of_its_own() -> None:
    model = Cast({"sum": [[ToolCall("c", "add", '{"x":1,"y":2}')], lambda request: results_of(request)[0]]})
    runner = runner_with(model, add, look, sub_agents=None)
    result = await runner.spawn(AgentRunSpec("adder", "sum", tools=["add"]), session_id="spawned")
    assert (result.text, result.session_id, await runner.sessions()) == ("3", "spawned", ["spawned"])
    with pytest.raises(ConfigError, match="there is no tool 'ad'; available: add, look"):
        runner.spawn(AgentRunSpec("adder", "sum", tools=["ad"]))
    with pytest.raises(ConfigError, match="has no task"):
        runner.spawn(AgentRunSpec("adder"))


async def test_the_extensions_of_a_run_reach_its_sub_agents_that_talk_to_its_model() -> None:
    own = Cast({"b": ["done b"]})
    roles = [
        AgentRunSpec("same"),
        AgentRunSpec("other", provider=own),
        AgentRunSpec("cool", extensions={"temperature": 0.0}),
    ]
    calls = [delegates(task, role, call_id=task) for task, role in (("a", "same"), ("b", "other"), ("c", "cool"))]
    model = Cast({"go": [calls, "end"], "a": ["done a"], "c": ["done c"]})
    await runner_with(model, sub_agents=roles).run("go", extensions={"temperature": 0.5})
    assert [request.extensions for request in model.asked("go")] == [{"temperature": 0.5}] * 2
    assert [request.extensions for request in model.asked("a")] == [{"temperature": 0.5}]
    assert [request.extensions for request in own.asked("b")] == [{}]
    assert [request.extensions for request in model.asked("c")] == [{"temperature": 0.0}]


async def test_the_extensions_of_a_run_reach_the_sub_agents_of_its_sub_agents() -> None:
    model = Cast({"go": [[delegates("a")], "end"], "a": [[delegates("b")], "end"], "b": ["end"]})
    await runner_with(model).run("go", extensions={"seed": 7})
    assert [request.extensions for request in model.asked("b")] == [{"seed": 7}]
