"""Sub-agents whose work is judged, and done again until it is good enough."""

from __future__ import annotations

import asyncio
import json

import pytest
from families import Cast, Play, config_of, delegates, of_agents, results_of

from deepstrike import (
    AgentRunSpec,
    ConfigError,
    DoneEvent,
    ErrorEvent,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    SubAgentHarnessConfig,
    ToolContext,
    tool,
)
from deepstrike.providers.base import ToolCall
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.stream import TextDelta
from deepstrike.wire.agents import Parent
from deepstrike.wire.message import Usage

SENT: list[str] = []


@tool
async def send(to: str) -> str:
    """Send a letter."""
    SENT.append(to)
    return f"sent to {to}"


def says(passed: bool, feedback: str = "") -> list[object]:
    """A verdict, with its usage."""
    return [TextDelta(json.dumps({"passed": passed, "feedback": feedback})), Usage(7, 3)]


def runner_with(
    model: Cast, *verdicts: object, log: InMemorySessionLog | None = None, max_turns: int = 25, attempts: int = 3
) -> RuntimeRunner:
    """A runner whose sub-agents are judged by this script."""
    judge = ScriptedProvider(verdicts)  # type: ignore[arg-type]
    return RuntimeRunner(
        RuntimeOptions(
            provider=model,
            session_log=log,
            execution_plane=LocalExecutionPlane().register(send),
            governance=Governance("allow").add_permission_rule("send", "ask"),
            max_turns=max_turns,
            sub_agent_harness=SubAgentHarnessConfig(eval_provider=judge, max_attempts=attempts),
        )
    )


def play(*tries: str) -> dict[str, Play]:
    """A root that delegates one task, which is tried so many times."""
    return {"go": [[delegates("write", "poet")], lambda request: results_of(request)[0]], "write": list(tries)}


async def test_work_that_does_not_pass_is_done_again_with_what_was_said_of_it() -> None:
    log, model = InMemorySessionLog(), Cast(play("bad", "good"))
    runner = runner_with(model, says(False, "rhyme it"), says(True), log=log)
    events = [event async for event in runner.run_streaming("go", session_id="s")]
    own = of_agents(events)["poet-2",]
    assert [event.type for event in own if event.type.endswith(("done", "verdict"))] == [
        "attempt_done",
        "verdict",
        "attempt_done",
        "verdict",
        "done",
    ]
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert (done.status, done.iterations, done.total_tokens) == ("completed", 4, 4 * 11 + 2 * 10)
    assert any("rhyme it" in repr(turn) for turn in model.asked("write")[1].turns)
    assert (await config_of(log, "s/2/2")).agents.parent == Parent("s", ("poet-2", "2"))
    assert {"s", "s/2/1", "s/2/1/verdict", "s/2/2"} < set(await log.sessions())


async def test_work_that_never_passes_is_an_error_with_the_reason_and_the_best_try() -> None:
    model = Cast(play("bad", "worse"))
    result = await runner_with(model, says(False, "no"), says(False, "no"), attempts=2).run("go")
    assert result.text.startswith("the sub-agent did not complete its task (error): its work was not good enough: no")
    assert result.text.endswith("Its last words: worse")


async def test_the_tries_share_what_the_sub_agent_was_granted() -> None:
    calls = [[ToolCall(f"c{n}", "recall", '{"ref":"0"}')] for n in range(20)]
    model = Cast({"go": [[delegates("write")], lambda request: results_of(request)[0]], "write": calls})
    result = await runner_with(model, *[says(False, "no")] * 3, max_turns=11).run("go")
    assert len(model.asked("write")) == 5
    assert "(max_turns)" in result.text or "not good enough" in result.text


async def test_tries_end_with_the_turns_and_the_best_work_stays() -> None:
    model, verdicts = Cast(play("first", "second", "third")), [says(False, "no")] * 3
    result = await runner_with(model, *verdicts, max_turns=5).run("go")
    assert len(model.asked("write")) == 2
    assert result.text.startswith("the sub-agent did not complete its task (max_turns): its work was not good enough")
    assert result.text.endswith("Its last words: second")


async def test_a_spawned_sub_agent_is_judged_and_tried_again() -> None:
    log, model = InMemorySessionLog(), Cast({"write": ["bad", "good"]})
    runner = runner_with(model, says(False, "rhyme it"), says(True), log=log)
    run = runner.spawn(AgentRunSpec("poet", "write"), session_id="s")
    events = [event async for event in run]
    result = await run
    assert (result.text, result.session_id, result.iterations, result.total_tokens) == ("good", "s", 2, 2 * 11 + 2 * 10)
    assert [event.type for event in events].count("done") == 1
    assert any("rhyme it" in repr(turn) for turn in model.asked("write")[1].turns)
    assert await log.sessions() == ["s/1", "s/1/verdict", "s/2", "s/2/verdict"]

    again = await runner_with(Cast({}), log=log).spawn(AgentRunSpec("poet", "write"), session_id="s")
    assert (again.text, again.total_tokens) == ("good", result.total_tokens)


async def test_a_spawned_sub_agent_that_never_passes_fails_with_the_reason() -> None:
    runner = runner_with(Cast({"write": ["bad", "worse"]}), says(False, "no"), says(False, "no"), attempts=2)
    run = runner.spawn(AgentRunSpec("poet", "write"))
    error, done = [event async for event in run][-2:]
    assert isinstance(error, ErrorEvent)
    assert isinstance(done, DoneEvent)
    assert (error.code, done.status) == ("not_passed", "error")
    with pytest.raises(RunFailed, match="not good enough: no") as failed:
        await run
    assert (failed.value.code, failed.value.result.text) == ("not_passed", "worse")


async def test_the_tries_of_a_spawned_sub_agent_share_its_turns_and_deps() -> None:
    calls = [[ToolCall(f"c{n}", "look", "{}")] for n in range(2)]
    model, seen = Cast({"write": [calls[0], "bad", calls[1], "never"]}), []

    @tool
    def look(context: ToolContext) -> str:
        seen.append(context.deps)
        return "nothing"

    judge = ScriptedProvider([says(False, "no")] * 3)  # type: ignore[list-item]
    runner = RuntimeRunner(
        RuntimeOptions(
            provider=model,
            execution_plane=LocalExecutionPlane().register(look),
            sub_agent_harness=SubAgentHarnessConfig(judge),
        )
    )
    result = await runner.spawn(AgentRunSpec("poet", "write", max_turns=4), deps="mine")
    assert (result.status, result.iterations, len(model.asked("write"))) == ("max_turns", 4, 4)
    assert seen == ["mine", "mine"]


@pytest.mark.parametrize("how", ["interrupt", "cancel", "close"])
async def test_a_spawned_sub_agent_that_is_judged_can_be_stopped(how: str) -> None:
    started = asyncio.Event()

    class Slow(Cast):
        async def stream(self, request):  # type: ignore[no-untyped-def]
            yield TextDelta("on ")
            started.set()
            await asyncio.sleep(3600)

    log = InMemorySessionLog()
    runner = runner_with(Slow({}), log=log)
    run = runner.spawn(AgentRunSpec("poet", "write"), session_id="s")
    work = asyncio.ensure_future(run.result())
    await started.wait()
    if how == "interrupt":
        runner.interrupt("s")
        assert (await work).status == "user_abort"
    elif how == "close":
        await runner.aclose()
        assert (await work).status == "user_abort"
    else:
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()
    assert len(asyncio.all_tasks()) == 1
    assert await log.sessions() == ["s/1"]
    done = await runner_with(Cast({"write": ["good"]}), says(True), log=log).spawn(
        AgentRunSpec("poet", "write"), session_id="s"
    )
    assert done.text == "good"


async def test_a_question_of_a_try_waits_for_its_answer_in_any_process() -> None:
    SENT.clear()
    log = InMemorySessionLog()
    ask: Play = [[ToolCall("c", "send", '{"to":"ann"}')], "sent"]
    model = Cast({"go": [[delegates("write", "poet")], lambda request: results_of(request)[0]], "write": ask})
    parked = await runner_with(model, log=log).run("go", session_id="s")
    assert (parked.status, [each.request_id for each in parked.pending]) == ("suspended", ["poet-2/1/2"])
    later = Cast({"go": [lambda request: results_of(request)[0]], "write": ["sent"]})
    done = await runner_with(later, says(True), log=log).resume("s", answers={"poet-2/1/2": True})
    assert (done.status, done.text, SENT) == ("completed", "sent", ["ann"])


async def test_an_interrupt_ends_the_try_and_counts_it() -> None:
    started = asyncio.Event()

    class Slow(Cast):
        async def stream(self, request):  # type: ignore[no-untyped-def]
            if "go" not in repr(request.turns[0]):
                yield Usage(10, 1)
                yield TextDelta("on ")
                started.set()
                await asyncio.sleep(3600)
            async for event in super().stream(request):
                yield event

    runner = runner_with(Slow(play("bad")), log=InMemorySessionLog())
    run = asyncio.ensure_future(runner.run("go", session_id="s").result())
    await started.wait()
    runner.interrupt("s")
    result = await run
    assert (result.status, result.iterations) == ("user_abort", 2)
    assert len(asyncio.all_tasks()) == 1


def test_a_judge_without_a_price_is_refused_where_there_is_a_budget_in_dollars() -> None:
    config = SubAgentHarnessConfig(eval_provider=ScriptedProvider([]))
    with pytest.raises(ConfigError, match="price"):
        RuntimeOptions(provider=Cast({}), sub_agent_harness=config, max_cost_usd=1.0)


def test_what_is_no_harness_is_refused() -> None:
    with pytest.raises(ConfigError, match="sub_agent_harness"):
        RuntimeOptions(provider=Cast({}), sub_agent_harness=3)  # type: ignore[arg-type]
