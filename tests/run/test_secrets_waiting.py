"""Calls that wait with a bound secret: who goes on with them, and what the tool gets then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest
from doubles import Script, call, calls, events_of, only, runner_of, say

from deepstrike import (
    Approve,
    Governance,
    InMemorySessionLog,
    PermissionRequestEvent,
    RuntimeRunner,
    ToolResultEvent,
    secrets,
)
from deepstrike.providers.base import ModelEvent
from deepstrike.secrets import HIDDEN, Bound, binding

KEY = "hunter2-hunter2"
OTHER = "swordfish-swordfish"


@pytest.fixture(autouse=True)
def two_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is bound."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY, OTHER)


GOT: list[tuple[object, ...]] = []


@pytest.fixture(autouse=True)
def nothing_got() -> None:
    GOT.clear()


async def pay(password: str, amount: int = 0, to: dict[str, str] | None = None) -> str:
    """Pay."""
    GOT.append((password, amount, to))
    return f"{password} was right"


def pays(password: str = KEY, amount: int = 500, to: dict[str, str] | None = None) -> list[ModelEvent]:
    return [*calls(call("pay", json.dumps({"password": password, "amount": amount, "to": to})))]


May = Callable[[PermissionRequestEvent], object]
Change = Callable[[Mapping[str, object]], Mapping[str, object]]


def runner(*replies: list[ModelEvent], log: InMemorySessionLog | None = None, may: May | None = None) -> RuntimeRunner:
    rules = Governance().add_permission_rule("pay", "ask")
    script = Script(*replies, say("ok"))
    return runner_of(script, pay, log=log, governance=rules, on_permission_request=may)


async def approved(change: Change, to: dict[str, str] | None = None, *, callback: bool = False) -> ToolResultEvent:
    """The result of a call that a person approved with changed arguments, by what they were shown."""

    async def may(request: PermissionRequestEvent) -> Approve:
        return Approve(change(request.arguments))

    log = InMemorySessionLog()
    first = runner(pays(to=to), log=log, may=may if callback else None)
    if callback:
        events = await events_of(first.run_streaming("go", session_id="s"))
    else:
        parked = await first.run("go", session_id="s")
        (request,) = parked.pending
        events = await events_of(first.resume("s", answers={request.request_id: Approve(change(request.arguments))}))
    kept = b"\n".join(await log.read("s"))
    assert (KEY.encode() in kept, OTHER.encode() in kept) == (False, False)
    assert (KEY in repr(events), OTHER in repr(events)) == (False, False)
    return only(ToolResultEvent, events)[-1]


@pytest.mark.parametrize("callback", [True, False])
async def test_given_shown_arguments_with_one_changed_when_approved_then_the_tool_gets_the_secret(
    callback: bool,
) -> None:
    result = await approved(lambda shown: {**shown, "amount": 10}, {"iban": OTHER, "name": "ann"}, callback=callback)
    assert not result.is_error
    assert GOT == [(KEY, 10, {"iban": OTHER, "name": "ann"})]


async def test_given_the_secret_itself_beside_what_was_shown_when_approved_then_the_tool_gets_both() -> None:
    await approved(lambda shown: {**shown, "password": OTHER}, {"iban": KEY})
    assert GOT == [(OTHER, 500, {"iban": KEY})]


@pytest.mark.parametrize(
    "change",
    [
        lambda shown: {"password": "x", "to": {"iban": shown["password"]}},
        lambda shown: {**shown, "password": f"{shown['password']}!"},
        lambda shown: {**shown, "to": {HIDDEN: "ann"}},
    ],
)
async def test_given_what_stands_for_a_secret_in_another_place_when_approved_then_the_call_is_not_run(
    change: Change,
) -> None:
    result = await approved(change)
    assert (GOT, result.error_kind) == ([], "not_run")


async def test_given_changed_arguments_from_another_runner_when_approved_then_the_call_is_not_run() -> None:
    log = InMemorySessionLog()
    parked = await runner(pays(), log=log).run("go", session_id="s")
    (request,) = parked.pending
    answers = {request.request_id: Approve({**request.arguments, "amount": 10})}
    events = await events_of(runner(log=log).resume("s", answers=answers))

    (result,) = only(ToolResultEvent, events)
    assert (GOT, result.error_kind) == ([], "not_run")
    assert KEY.encode() not in b"\n".join(await log.read("s"))


async def test_given_two_calls_that_look_alike_when_approved_then_each_gets_its_own_secret() -> None:
    async def enter(password: str, times: int) -> str:
        got.append((password, times))
        return "in"

    got: list[tuple[str, int]] = []
    wanted = [
        call("enter", json.dumps({"password": word, "times": 1}), f"c{at}") for at, word in enumerate((KEY, OTHER))
    ]
    here = runner_of(Script(calls(*wanted), say("ok")), enter, governance=Governance("ask"))
    parked = await here.run("go", session_id="s")
    answers = {asked.request_id: Approve({**asked.arguments, "times": 2}) for asked in parked.pending}
    await here.resume("s", answers=answers)
    assert sorted(got) == [(KEY, 2), (OTHER, 2)]


async def test_given_runs_side_by_side_when_one_waits_with_a_secret_then_the_others_do_not_make_it_forgotten() -> None:
    async def wait() -> str:
        await others_are_over.wait()
        return "ok"

    others_are_over = asyncio.Event()
    script = Script(calls(call("wait")), say("other"), pays(), say("ok"))
    here = runner_of(script, pay, wait, governance=Governance().add_permission_rule("pay", "ask"))

    async def first() -> str:
        parked = await here.run("go", session_id="first")
        answers = {asked.request_id: True for asked in parked.pending}
        return (await here.resume("first", answers=answers)).status

    running = asyncio.ensure_future(first())
    while not script.requests:
        await asyncio.sleep(0)
    assert (await here.run("go", session_id="other")).text == "other"
    others_are_over.set()
    assert (await running, GOT) == ("completed", [(KEY, 500, None)])
