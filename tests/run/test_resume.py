"""A goal goes on from its log: crashed, interrupted, failed or limited, in any process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import pytest
from doubles import (
    Endless,
    Script,
    add,
    assert_paired,
    call,
    calls,
    copied,
    done_of,
    events_of,
    kinds_of,
    only,
    result_texts,
    runner_of,
    say,
    user_texts,
)

from deepstrike import (
    ConfigError,
    DoneEvent,
    InMemorySessionLog,
    RunFailed,
    TextDelta,
    ToolContext,
    ToolResultEvent,
    tool,
)
from deepstrike.errors import Overloaded, SessionBusy, UnknownSession
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest
from deepstrike.wire.message import HeadBlock, Usage


class Ledger:
    """Three tools, one of each effect class, that note under which key they ran."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []

    def tools(self) -> list[Callable[..., object]]:
        """The tools."""

        @tool(effect="read")
        async def look(context: ToolContext) -> str:
            return self._note("look", context)

        @tool(effect="idempotent")
        async def put(context: ToolContext) -> str:
            return self._note("put", context)

        @tool
        async def send(context: ToolContext) -> str:
            return self._note("send", context)

        return [look, put, send]

    def _note(self, name: str, context: ToolContext) -> str:
        self.ran.append((name, context.idempotency_key))
        return f"{name} done"


def three_calls() -> Script:
    """A model that asks for all three tools at once, then says so."""
    return Script(calls(call("look", "{}", "a"), call("put", "{}", "b"), call("send", "{}", "c")), say("All done."))


async def whole_session(ledger: Ledger) -> InMemorySessionLog:
    """A finished session of three calls."""
    log = InMemorySessionLog()
    await runner_of(three_calls(), *ledger.tools(), log=log).run("go", session_id="s")
    return log


def begun_and_settled(records: list[bytes]) -> tuple[set[int], set[int]]:
    """The indexes of the calls that have begun, and of those that have their result."""
    events = [json.loads(line)["event"] for line in records]
    begun = {event["call"]["index"] for event in events if event["type"] == "begun"}
    return begun, {event["call"]["index"] for event in events if event["type"] == "settled"}


async def test_a_log_cut_behind_any_record_goes_on_and_each_tool_runs_by_its_class() -> None:
    first = Ledger()
    log = await whole_session(first)
    records = await log.read("s")
    names, keys = ("look", "put", "send"), dict(first.ran)
    for cut in range(2, len(records) - 1):
        ledger, script = Ledger(), Script(say("Done."))
        result = await runner_of(script, *ledger.tools(), log=await copied(log, "s", cut)).resume("s")

        begun, settled = begun_and_settled(records[:cut])
        lost = "send" in {names[index] for index in begun - settled}
        owed = {name for index, name in enumerate(names) if index not in settled} - ({"send"} if lost else set())
        assert (result.status, result.text) == ("completed", "Done."), cut
        assert sorted(ledger.ran) == sorted((name, keys[name]) for name in owed), cut
        assert_paired(script.turns[0])
        told = "the outcome is unknown; it may have taken effect" if lost else "send done"
        assert result_texts(script.turns[0]) == ["look done", "put done", told], cut


async def test_a_goal_without_a_reply_asks_the_model_and_one_with_its_last_reply_does_not() -> None:
    log = await whole_session(Ledger())
    ledger = Ledger()
    started = await copied(log, "s", 1)
    assert (await runner_of(three_calls(), *ledger.tools(), log=started).resume("s")).text == "All done."
    assert [name for name, _ in ledger.ran] == ["look", "put", "send"]
    silent = Script()
    replied = await copied(log, "s", len(await log.read("s")) - 1)
    assert (await runner_of(silent, log=replied).resume("s")).text == "All done."
    assert silent.requests == []


async def test_a_completed_session_gives_its_recorded_end_alone() -> None:
    log = InMemorySessionLog()
    model = Script([*calls(call("add", '{"x":1,"y":2}')), Usage(20, 5)], [TextDelta("3"), Usage(30, 1), Finish("stop")])
    first = await events_of(runner_of(model, add, log=log).run_streaming("1 + 2?", session_id="s"))
    before = await log.read("s")
    silent = Script()
    again = runner_of(silent, log=log)
    assert await events_of(again.resume("s")) == [done_of(first)]
    result = await again.resume("s")
    assert (result.text, result.status, result.total_tokens, result.iterations) == ("3", "completed", 56, 2)
    assert (await log.read("s"), silent.requests) == (before, [])


async def test_a_limit_that_is_not_raised_ends_the_same_way_without_a_model_call() -> None:
    log = InMemorySessionLog()
    await runner_of(Script(calls(call("add", '{"x":1,"y":2}'))), add, log=log, max_turns=1).run("go", session_id="s")
    silent = Script()
    result = await runner_of(silent, add, log=log, max_turns=1).resume("s")
    assert (result.status, result.code, result.iterations, silent.requests) == ("max_turns", "max_turns", 1, [])
    assert result.error is not None
    assert "raise max_turns" in result.error
    raised = await runner_of(Script(say("3")), add, log=log, max_turns=2).resume("s")
    assert (raised.status, raised.text, raised.iterations) == ("completed", "3", 2)


async def test_a_failed_goal_asks_the_model_again() -> None:
    log = InMemorySessionLog()
    with pytest.raises(RunFailed):
        await runner_of(Script(Overloaded("try later")), log=log).run("hello", session_id="s")
    script = Script(say("hi"))
    assert (await runner_of(script, log=log).resume("s")).text == "hi"
    assert user_texts(script.turns[0]) == ["hello"]


async def test_an_interrupted_answer_goes_on_behind_what_was_shown() -> None:
    log = InMemorySessionLog()
    runner = runner_of(Endless(), log=log)
    async for event in runner.run_streaming("a tale", session_id="s"):
        if isinstance(event, TextDelta):
            runner.interrupt("s")
    script = Script(say("the end"))
    events = await events_of(runner_of(script, log=log).resume("s"))
    assert [event.delta for event in only(TextDelta, events)] == ["the end"]
    assert done_of(events).status == "completed"
    assert user_texts(script.turns[0]) == ["a tale", "The previous reply was interrupted; go on."]


async def test_a_log_that_ends_with_a_cut_reply_goes_on() -> None:
    class Breaks:
        async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("Half an ans")
            raise Overloaded("gone")

    log = InMemorySessionLog()
    with pytest.raises(RunFailed):
        await runner_of(Breaks(), log=log).run("hello", session_id="s")
    assert await kinds_of(log, "s") == ["started", "replied", "failed", "ended"]
    for records in (2, 3, 4):
        script = Script(say("Whole."))
        assert (await runner_of(script, log=await copied(log, "s", records)).resume("s")).text == "Whole."
        assert_paired(script.turns[0])


async def test_a_session_that_does_not_exist_is_named_and_not_made() -> None:
    log = InMemorySessionLog()
    runner = runner_of(Script(), log=log)
    for ask in (runner.resume("s").result, lambda: runner.pending("s"), lambda: runner.context("s")):
        with pytest.raises(UnknownSession, match="'s'"):
            await ask()
    assert await log.sessions() == []
    assert await runner_of(Script(say("fine")), log=log).run("hello", session_id="s")


async def test_a_live_session_is_busy_at_once() -> None:
    model = Endless()
    runner = runner_of(model)
    async with runner.run_streaming("talk", session_id="s") as run:
        await anext(aiter(run))
        with pytest.raises(SessionBusy):
            await runner.resume("s")


async def test_a_tool_that_is_gone_gives_the_model_an_error_that_names_what_is_there() -> None:
    log = await copied(await whole_session(Ledger()), "s", 3)
    script = Script(say("So be it."))
    events = await events_of(runner_of(script, add, log=log).resume("s"))
    assert [(event.call_id, event.name, event.error_kind) for event in only(ToolResultEvent, events)] == [
        ("a", "look", "unknown_tool"),
        ("b", "put", "unknown_tool"),
        ("c", "send", "unknown_tool"),
    ]
    assert result_texts(script.turns[0]) == [
        f"there is no tool {name!r}; available: add" for name in ("look", "put", "send")
    ]


async def test_todays_options_apply() -> None:
    log = InMemorySessionLog()
    with pytest.raises(RunFailed):
        await runner_of(Script(Overloaded("later")), log=log, system_prompt="Old.").run("hello", session_id="s")
    script = Script(say("hi"))
    await runner_of(script, add, log=log, system_prompt="New.").resume("s")
    request = script.requests[0]
    assert (request.system_stable, [spec.name for spec in request.tools]) == ("New.", ["add", "recall", "update_plan"])
    assert not any(isinstance(turn, HeadBlock) for turn in request.turns)


async def test_a_lost_call_is_told_with_its_name() -> None:
    log = await copied(await whole_session(Ledger()), "s", 8)
    assert (await kinds_of(log, "s"))[-3:] == ["begun", "begun", "begun"]
    ledger = Ledger()
    events = await events_of(runner_of(Script(say("ok")), *ledger.tools(), log=log).resume("s"))
    results = {event.call_id: (event.name, event.error_kind) for event in only(ToolResultEvent, events)}
    assert results == {"a": ("look", None), "b": ("put", None), "c": ("send", "outcome_unknown")}


async def test_a_resume_in_the_same_runner_goes_on_from_memory_and_in_another_from_the_log_alike() -> None:
    script = Script(calls(call("add", '{"x":1,"y":2}')), say("3"), say("and more"))
    runner = runner_of(script, add, max_turns=1)
    log = runner_log = InMemorySessionLog()
    limited = runner_of(script, add, log=log, max_turns=1)
    await limited.run("1 + 2?", session_id="s")
    elsewhere = Script(say("3"))
    copy = await copied(runner_log, "s")
    assert (await limited.resume("s")).status == "max_turns"
    assert (await runner_of(elsewhere, add, log=copy, max_turns=3).resume("s")).text == "3"
    assert (await runner_of(script, add, log=log, max_turns=3).resume("s")).text == "3"
    assert elsewhere.turns[0] == script.turns[1]
    assert await runner.sessions() == []


async def test_a_resume_that_is_interrupted_before_it_begins_ends_user_abort_and_can_be_resumed() -> None:
    class Interrupting(InMemorySessionLog):
        async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
            runner.interrupt(session_id)
            return await super().read(session_id, from_seq)

    silent, log = Script(), Interrupting()
    runner = runner_of(silent, log=log)
    await copied(await whole_session(Ledger()), "s", 1, into=log)
    result = await runner.resume("s")
    assert (result.status, silent.requests) == ("user_abort", [])
    assert await kinds_of(log, "s") == ["started", "resumed", "ended"]
    assert (await runner_of(Script(say("hi")), log=log).resume("s")).text == "hi"


async def test_a_further_goal_after_a_resume_goes_on_with_all_of_it() -> None:
    log = await copied(await whole_session(Ledger()), "s", 8)
    ledger, script = Ledger(), Script(say("ok"), say("again"))
    runner = runner_of(script, *ledger.tools(), log=log)
    await runner.resume("s")
    await runner.run("more", session_id="s")
    assert user_texts(script.turns[1]) == ["go", "more"]
    assert_paired(script.turns[1])


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (["x"], "dict"),
        ({1: True}, "dict"),
        ({"4": {1, 2}}, "JSON"),
        ({"4": float("nan")}, "JSON"),
        ({"4": "x" * 2**20}, "larger"),
    ],
)
def test_an_answer_that_cannot_be_recorded_is_refused_when_it_is_given(answers: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        runner_of(Script()).resume("s", answers=answers)  # type: ignore[arg-type]


def test_an_answer_that_nests_too_deeply_is_refused_when_it_is_given() -> None:
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(ConfigError, match="nests"):
        runner_of(Script()).resume("s", answers={"4": deep})


async def test_an_answer_to_a_completed_session_is_refused() -> None:
    log = await whole_session(Ledger())
    with pytest.raises(ConfigError, match="no open request"):
        await runner_of(Script(), log=log).resume("s", answers={"4": 1})
    assert isinstance((await events_of(runner_of(Script(), log=log).resume("s")))[0], DoneEvent)


async def test_looking_at_a_session_shows_its_slots_in_any_process_and_while_it_is_live() -> None:
    log = InMemorySessionLog()
    model = Script([*calls(call("add", '{"x":1,"y":2}')), Usage(500, 5)], say("3"))
    runner = runner_of(model, add, log=log, system_prompt="You add.")
    await runner.run("1 + 2?", session_id="s")
    view = await runner.context("s")
    assert (view.system_stable.text, view.system_knowledge.text) == ("You add.", "")
    assert [spec.name for spec in view.tools.specs] == ["add", "recall", "update_plan"]
    assert [*view.state.turns, *view.history.turns][: len(model.turns[1])] == model.turns[1]
    weights = (view.system_stable, view.tools, view.state, view.history)
    assert all(slot.tokens > 0 for slot in weights)
    assert (view.system_knowledge.tokens, view.window) == (0, 100_000)
    assert 500 < view.total_tokens < 600
    assert await runner_of(Script(), log=await copied(log, "s")).context("s") == view
    owner = await log.acquire("s")
    assert (await runner.context("s"), await runner.pending("s")) == (view, ())
    await log.release("s", owner)


async def test_a_record_that_only_a_newer_version_knows_is_skipped_with_a_warning_if_it_may_be(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = await copied(await whole_session(Ledger()), "s", 2)
    owner = await log.acquire("s")
    at = json.loads((await log.read("s"))[-1])["at"]
    later = b'{"seq":2,"at":%d,"event":{"type":"dreamt","of":["sheep"]},"optional":true}' % at
    await log.append("s", [later], 2, owner=owner)
    await log.release("s", owner)
    ledger = Ledger()
    assert (await runner_of(Script(say("ok")), *ledger.tools(), log=log).resume("s")).status == "completed"
    assert len(ledger.ran) == 3
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "deepstrike"]
    assert "record 2 is of a kind that this version does not know" in warning


async def test_a_session_id_is_needed_to_resume_or_to_look() -> None:
    runner = runner_of(Script())
    with pytest.raises(ConfigError, match="session_id"):
        runner.resume(None)  # type: ignore[arg-type]
    for ask in (runner.pending, runner.context):
        with pytest.raises(ConfigError, match="session_id"):
            await ask(None)  # type: ignore[arg-type]
