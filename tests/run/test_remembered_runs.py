"""Runs that end are kept in the dream store, each session once, and no store breaks a run."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from doubles import Endless, Script, add, call, calls, copied, say

from deepstrike import (
    DreamStore,
    InMemoryDreamStore,
    InMemorySessionLog,
    LLMProvider,
    LocalExecutionPlane,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    SessionLog,
    SqliteDreamStore,
    Text,
)
from deepstrike.host import remember
from deepstrike.memory import MemoryEntry, SessionData
from deepstrike.tools.suspension import Suspend


class Counting(InMemoryDreamStore):
    """Counts what is saved; `raises` is raised instead, `hangs` never comes back."""

    def __init__(self, *, raises: Exception | None = None, hangs: bool = False) -> None:
        super().__init__()
        self.saved: list[SessionData] = []
        self.raises = raises
        self.hangs = hangs

    async def save_session(self, data: SessionData) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.raises is not None:
            raise self.raises
        self.saved.append(data)
        await super().save_session(data)


def runner(
    model: LLMProvider, store: DreamStore, *, log: SessionLog | None = None, max_turns: int = 5, **options: object
) -> RuntimeRunner:
    """A runner that remembers."""
    return RuntimeRunner(
        RuntimeOptions(
            provider=model,
            execution_plane=LocalExecutionPlane().register(add, ask),
            dream_store=store,
            agent_id="agent",
            session_log=log,
            max_turns=max_turns,
            **options,  # type: ignore[arg-type]  # of the options' own types
        )
    )


async def ask() -> object:
    """Ask."""
    yield str(await asyncio.sleep(0, "before"))
    yield Suspend({"which": 1})


def told(data: SessionData) -> list[tuple[object, ...]]:
    """Its messages without their times."""
    return [tuple(value for key, value in message.items() if key != "at_ms") for message in data.messages]


SUM = calls(call("add", '{"x":1,"y":2}'))


async def test_given_a_store_when_runs_end_then_the_session_is_kept_under_its_id_with_the_words_of_all() -> None:
    store = Counting()
    made = runner(Script(SUM, say("It is 3."), say("Bye.")), store)

    await made.run([Text("What is"), Text("1 + 2?")], session_id="sums", criteria=["be right"])
    await made.run("Thanks.", session_id="sums")

    first = [("user", "What is\n1 + 2?\nbe right"), ("tool", "3", "add"), ("assistant", "It is 3.")]
    assert [told(data) for data in store.saved] == [first, [*first, ("user", "Thanks."), ("assistant", "Bye.")]]
    assert [(data.session_id, data.agent_id, data.metadata) for data in store.saved] == [
        ("sums", "agent", {"status": "completed"})
    ] * 2
    (kept,) = await store.load_sessions("agent")
    times = [message["at_ms"] for message in kept.messages]
    assert times == sorted(times)  # type: ignore[type-var]  # they are numbers
    assert (kept.created_at_ms, kept.updated_at_ms >= times[-1]) == (times[0], True)  # type: ignore[operator]


async def test_given_what_the_meta_tools_gave_and_failures_when_a_run_ends_then_words_of_failures_are_kept() -> None:
    store = Counting()
    model = Script(
        calls(call("memory", '{"query":"x"}'), call("add", '{"x":1}', "c2"), call("update_plan", '{"steps":[]}', "c3")),
        say("ok"),
    )

    await runner(model, store).run("go")

    assert told(store.saved[0]) == [("user", "go"), ("assistant", "ok", ["y", "missing", "required"])]


async def test_given_a_long_result_when_a_run_ends_then_its_beginning_is_kept_and_the_words_of_the_rest() -> None:
    def long() -> str:
        """Say much."""
        return "x" * 2_000 + " the end"

    store = Counting()
    options = RuntimeOptions(
        provider=Script(calls(call("long")), say("ok")),
        execution_plane=LocalExecutionPlane().register(long),
        dream_store=store,
        agent_id="agent",
    )

    await RuntimeRunner(options).run("go")

    assert told(store.saved[0])[1] == ("tool", "x" * 2_000, "long", ["end"])


@pytest.mark.parametrize(
    ("model", "status"),
    [
        (Script(SUM), "max_turns"),
        (Script(ConnectionError("no network")), "error"),
    ],
)
async def test_given_a_run_that_ends_otherwise_when_it_ends_then_it_is_kept_too(model: Script, status: str) -> None:
    store = Counting()

    try:
        result = await runner(model, store, max_turns=2).run("go", session_id="s")
    except RunFailed as failed:
        result = failed.result

    assert result.status == status
    assert [(data.session_id, data.metadata, told(data)[0]) for data in store.saved] == [
        ("s", {"status": status}, ("user", "go"))
    ]


async def test_given_a_run_that_is_left_in_the_middle_when_it_is_closed_then_it_is_kept() -> None:
    store = Counting()
    run = runner(Endless(), store).run_streaming("go", session_id="s")

    async with run:
        async for _ in run:
            break

    assert [(data.metadata, told(data)[0]) for data in store.saved] == [({"status": "user_abort"}, ("user", "go"))]


async def test_given_a_run_that_waits_when_it_goes_on_and_ends_then_it_is_kept_once() -> None:
    store, log = Counting(), InMemorySessionLog()
    parked = await runner(Script(calls(call("ask"))), store, log=log).run("go", session_id="s")
    assert (parked.status, store.saved) == ("suspended", [])
    made = runner(Script(say("ok")), store, log=log)

    await made.resume("s", answers={parked.pending[0].request_id: "that"})
    await made.resume("s")

    assert [data.metadata for data in store.saved] == [{"status": "completed"}]


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        (Counting(raises=OSError("disk full")), "the dream store failed: OSError: disk full"),
        (Counting(hangs=True), "the dream store did not answer in time"),
    ],
)
async def test_given_a_store_that_fails_when_a_run_ends_then_it_is_told_and_the_run_is_as_it_was(
    store: Counting, reason: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remember, "SAVE_SECONDS", 0.01)
    log = InMemorySessionLog()
    made = runner(Script(say("ok")), store, log=log)

    with caplog.at_level(logging.WARNING, "deepstrike"):
        assert (await made.run("go", session_id="s")).text == "ok"
        assert (await made.run("again", session_id="s")).status == "completed"

    assert [record.getMessage() for record in caplog.records] == [f"session 's' is not remembered: {reason}"] * 2


async def test_given_a_record_of_a_later_version_when_the_run_ends_then_the_rest_is_kept() -> None:
    store, log = Counting(), InMemorySessionLog()
    await runner(Script(say("ok")), InMemoryDreamStore(), log=log).run("go", session_id="s")
    later = await copied(log, "s")
    owner = await later.acquire("s")
    seq = await later.latest_seq("s") + 1
    line = f'{{"seq":{seq},"at":4000000000000,"optional":true,"event":{{"type":"dreamt"}}}}'
    await later.append("s", [line.encode()], seq, owner=owner)
    await later.release("s", owner)

    await runner(Script(say("still")), store, log=later).run("more", session_id="s")

    expected = [("user", "go"), ("assistant", "ok"), ("user", "more"), ("assistant", "still")]
    assert told(store.saved[0]) == expected


async def test_given_a_file_when_another_session_asks_then_what_was_said_in_the_first_is_found(tmp_path: Path) -> None:
    store = SqliteDreamStore(tmp_path / "memory.db")
    await runner(Script(say("Noted.")), store).run("My favourite colour is chartreuse.", session_id="colours")
    model = Script(calls(call("memory", '{"query":"favourite colour"}')), say("ok"))

    await runner(model, store).run("Which colour?", session_id="later")

    found = await store.search("agent", "favourite colour", 1)
    assert [(entry.text, entry.metadata["session_id"]) for entry in found] == [
        ("My favourite colour is chartreuse.", "colours")
    ]
    assert "session colours, user) My favourite" in str(model.turns[1][-1])
    assert isinstance(found[0], MemoryEntry)
