"""What sub-agents ask: answered here at once, or by whoever goes on with their parent, in any process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from families import Cast, delegates, of_agents, results_of, runner_with

from deepstrike import (
    AgentEvent,
    Approve,
    ConfigError,
    Deny,
    DoneEvent,
    Governance,
    InMemorySessionLog,
    PendingRequest,
    PermissionRequestEvent,
    RuntimeRunner,
    Suspend,
    ToolSuspendEvent,
    tool,
)
from deepstrike.providers.base import ToolCall

SENT: list[str] = []
ANN, BOB, CHOICE = "post-2/2", "agent-3/post-2/2", "agent-4/4"


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    SENT.clear()


@tool
async def send(to: str) -> str:
    """Send a letter."""
    SENT.append(to)
    return f"sent to {to}"


async def choose(question: str) -> AsyncIterator[str | Suspend]:
    """Ask a person."""
    answer = yield Suspend(question)
    yield f"chose {answer}"


def last(request: object) -> str:
    """What the last result says."""
    return results_of(request)[-1]  # type: ignore[arg-type]


def play() -> Cast:
    """A root that delegates two letters, one of them over a sub-agent of its own, and a choice."""
    return Cast(
        {
            "go": [
                [
                    delegates("ann", "post", call_id="a"),
                    delegates("deep", call_id="b"),
                    delegates("choose", call_id="c"),
                ],
                lambda request: "\n".join(results_of(request)),
            ],
            "ann": [[ToolCall("call_0", "send", '{"to":"ann"}')], last],
            "deep": [[delegates("bob", "post")], last],
            "bob": [[ToolCall("call_0", "send", '{"to":"bob"}')], last],
            "choose": [[ToolCall("call_0", "choose", '{"question":"which?"}')], last],
        }
    )


def later(log: InMemorySessionLog) -> RuntimeRunner:
    """Another process's runner on the same log, whose model goes on where each agent stands."""
    model = Cast(
        {
            "go": [lambda request: "\n".join(results_of(request))],
            **{goal: [last] for goal in ("ann", "deep", "bob", "choose")},
        }
    )
    return runner_with(model, send, choose, log=log, governance=asks())


def asks() -> Governance:
    """Letters need a person's word."""
    return Governance("allow").add_permission_rule("send", "ask", reason="it leaves the house")


async def parked() -> tuple[InMemorySessionLog, DoneEvent]:
    """A session whose three sub-agents wait."""
    log = InMemorySessionLog()
    runner = runner_with(play(), send, choose, log=log, governance=asks())
    events = [event async for event in runner.run_streaming("go", session_id="s")]
    done = events[-1]
    assert isinstance(done, DoneEvent)
    return log, done


async def test_the_questions_of_all_sub_agents_are_those_of_their_root() -> None:
    log, done = await parked()
    assert (done.status, SENT) == ("suspended", [])
    assert done.pending == (
        PendingRequest(ANN, "approval", "call_0", "send", {"to": "ann"}, reason="it leaves the house"),
        PendingRequest(CHOICE, "suspension", "call_0", "choose", {"question": "which?"}, payload="which?"),
        PendingRequest(BOB, "approval", "call_0", "send", {"to": "bob"}, reason="it leaves the house"),
    )
    assert await later(log).pending("s") == done.pending
    assert [each.request_id for each in await later(log).pending("s/3/2")] == [BOB]


async def test_they_are_shown_wrapped_under_the_ids_that_answer_them() -> None:
    runner = runner_with(play(), send, choose, governance=asks())
    events = [event async for event in runner.run_streaming("go", session_id="s")]
    assert not any(isinstance(event, PermissionRequestEvent | ToolSuspendEvent) for event in events)
    asked = {
        path: [
            event.request_id if isinstance(event, PermissionRequestEvent) else event.suspension_id
            for event in own
            if isinstance(event, PermissionRequestEvent | ToolSuspendEvent)
        ]
        for path, own in of_agents(events).items()
    }
    assert asked == {
        ("post-2",): ["post-2/2"],
        ("agent-3",): [],
        ("agent-3", "post-2"): ["agent-3/post-2/2"],
        ("agent-4",): ["agent-4/4"],
    }


async def test_answers_reach_sub_agents_in_another_process() -> None:
    log, _ = await parked()
    result = await later(log).resume("s", answers={ANN: True, BOB: Deny("no"), CHOICE: "left"})
    assert (result.status, SENT) == ("completed", ["ann"])
    assert result.text.splitlines() == ["sent to ann", "denied: no", "chose left"]


async def test_questions_without_an_answer_stay_open() -> None:
    log, _ = await parked()
    some = await later(log).resume("s", answers={BOB: Approve({"to": "eve"})})
    assert (some.status, [each.request_id for each in some.pending], SENT) == ("suspended", [ANN, CHOICE], ["eve"])
    with pytest.raises(ConfigError, match="answered before"):
        await later(log).resume("s", answers={BOB: True})
    model = Cast({"go": [lambda request: "\n".join(results_of(request))], "ann": [last], "choose": [last]})
    runner = runner_with(model, send, choose, log=log, governance=asks())
    rest = await runner.resume("s", answers={ANN: True, CHOICE: "right"})
    assert rest.text.splitlines() == ["sent to ann", "sent to eve", "chose right"]


async def test_a_wrong_answer_is_refused_and_nothing_is_recorded() -> None:
    log, _ = await parked()
    before = [await log.read(session) for session in ("s", "s/2", "s/3", "s/3/2", "s/4")]
    for wrong in ({ANN: "yes"}, {CHOICE: Deny("no")}, {"nobody-9/1": True}, {"call_0": True}):
        with pytest.raises(ConfigError):
            await later(log).resume("s", answers=wrong)
    assert [await log.read(session) for session in ("s", "s/2", "s/3", "s/3/2", "s/4")] == before


async def test_without_answers_nothing_happens() -> None:
    log, done = await parked()
    before = await log.read("s")
    events = [event async for event in later(log).resume("s")]
    assert (events, await log.read("s")) == ([done], before)


async def test_a_callback_answers_for_all_of_them() -> None:
    heard: list[str] = []

    def may(event: PermissionRequestEvent) -> bool:
        heard.append(event.request_id)
        return event.arguments["to"] == "bob"

    def choice(event: ToolSuspendEvent) -> str:
        heard.append(event.suspension_id)
        return "middle"

    runner = runner_with(play(), send, choose, governance=asks(), on_permission_request=may, on_tool_suspend=choice)
    result = await runner.run("go", session_id="s")
    assert (result.status, SENT) == ("completed", ["bob"])
    assert sorted(heard) == ["agent-3/post-2/2", "agent-4/4", "post-2/2"]


async def test_somebody_who_comes_later_is_asked_what_is_open() -> None:
    log, _ = await parked()
    model = Cast(
        {
            "go": [lambda request: "\n".join(results_of(request))],
            **{goal: [last] for goal in ("ann", "deep", "bob", "choose")},
        }
    )
    runner = runner_with(model, send, choose, log=log, governance=asks(), on_permission_request=lambda _: True)
    result = await runner.resume("s")
    assert (result.status, [each.name for each in result.pending]) == ("suspended", ["choose"])
    assert sorted(SENT) == ["ann", "bob"]


async def test_a_new_goal_withdraws_what_was_asked() -> None:
    log, _ = await parked()
    model = Cast({"go": [], "other": [lambda request: "|".join(results_of(request))]})
    model.parts["go"] = [lambda request: "|".join(results_of(request))]
    result = await runner_with(model, send, choose, log=log, governance=asks()).run("other", session_id="s")
    assert result.text.count("withdrawn") == 3
    assert isinstance(result.pending, tuple)


async def test_a_sub_agent_that_waits_does_not_show_its_call_as_a_question() -> None:
    runner = runner_with(play(), send, choose, governance=asks())
    events = [event async for event in runner.run_streaming("go")]
    dones = [event.event for event in events if isinstance(event, AgentEvent) and isinstance(event.event, DoneEvent)]
    assert {done.status for done in dones} == {"suspended"}
