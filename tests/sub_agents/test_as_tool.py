"""An agent as a tool of another one."""

from __future__ import annotations

import dataclasses

import pytest
from families import Cast, config_of, of_agents, results_of, runner_with

from deepstrike import (
    ConfigError,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    RuntimeOptions,
    RuntimeRunner,
    tool,
)
from deepstrike.agents import as_tool
from deepstrike.providers.base import ToolCall
from deepstrike.wire.agents import Agents, Parent


@tool
async def law(paragraph: int) -> str:
    """Look up the law."""
    return f"§{paragraph} forbids it"


def lawyer(**changed: object) -> RuntimeOptions:
    """An agent with a model, a prompt and a tool of its own."""
    model = Cast({"may I?": [[ToolCall("c", "law", '{"paragraph":7}')], lambda request: results_of(request)[0]]})
    plane = LocalExecutionPlane().register(law)
    options = RuntimeOptions(provider=model, system_prompt="You know the law.", execution_plane=plane)
    return dataclasses.replace(options, **changed)  # type: ignore[arg-type]


def asks() -> Cast:
    """A model that asks the lawyer."""
    call = ToolCall("c", "lawyer", '{"task":"may I?"}')
    return Cast({"go": [[call], lambda request: results_of(request)[0]]})


async def test_a_call_puts_the_agent_to_work_within_the_run() -> None:
    log = InMemorySessionLog()
    runner = runner_with(asks(), as_tool(lawyer(), "lawyer", "knows the law"), sub_agents=None, log=log, max_turns=9)
    events = [event async for event in runner.run_streaming("go", session_id="s")]
    assert [event.type for event in of_agents(events)["lawyer-2",]][-1] == "done"
    child = await config_of(log, "s/2")
    assert child.agents == Agents(parent=Parent("s", ("lawyer-2",)))
    assert (child.system, [spec.name for spec in child.tools]) == ("You know the law.", ["law"])
    assert child.limits.max_turns == 4
    result = await runner.resume("s")
    assert (result.text, result.iterations) == ("§7 forbids it", 4)


async def test_the_rules_of_the_calling_run_hold_inside() -> None:
    rules = Governance("allow").block_tool("law")
    runner = runner_with(asks(), as_tool(lawyer(), "lawyer", "knows the law"), sub_agents=None, governance=rules)
    assert (await runner.run("go")).text.startswith("denied by veto")


async def test_rules_of_its_own_hold_where_the_run_has_none() -> None:
    rules = Governance("allow").block_tool("law")
    runner = runner_with(asks(), as_tool(lawyer(governance=rules), "lawyer", "knows the law"), sub_agents=None)
    assert (await runner.run("go")).text.startswith("denied by veto")


async def test_two_sets_of_rules_are_refused() -> None:
    made = as_tool(lawyer(governance=Governance("allow")), "lawyer", "knows the law")
    runner = runner_with(asks(), made, sub_agents=None, governance=Governance("allow"))
    assert "share one" in (await runner.run("go")).text


async def test_a_structured_answer_is_its_json() -> None:
    model = Cast({"may I?": ['{"verdict": "no"}']})
    schema = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}
    made = as_tool(lawyer(provider=model, output_type=schema), "lawyer", "knows the law")
    assert (await runner_with(asks(), made, sub_agents=None).run("go")).text == '{"verdict": "no"}'


async def test_outside_a_run_there_is_nobody_to_work_for() -> None:
    made = as_tool(RuntimeRunner(lawyer()), "lawyer", "knows the law")
    runner = runner_with(asks(), sub_agents=None)
    assert made.spec.agent
    assert "available: none" in (await runner.run("go")).text


@pytest.mark.parametrize(
    "wrong",
    [lambda: as_tool("x", "a", "b"), lambda: as_tool(lawyer(), "", "b"), lambda: as_tool(lawyer(), "a", " ")],  # type: ignore[arg-type]
)
def test_what_is_no_agent_is_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ConfigError):
        wrong()
