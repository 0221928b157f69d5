"""Calls that governance asks about: a person in this process says whether they run, or a later one does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from doubles import (
    Script,
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
)

from deepstrike import (
    Approve,
    ConfigError,
    Deny,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    PendingRequest,
    PermissionRequestEvent,
    RuntimeOptions,
    RuntimeRunner,
    StreamEvent,
    Suspend,
    ToolDeniedEvent,
    ToolResultEvent,
    tool,
)
from deepstrike.testing import ManualClock

NO = "the person who was asked did not allow it"
FITTING = 'True, False, Deny("why") or Approve(arguments)'


class Bank:
    """A tool that notes what it was called with."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

    async def pay(self, to: str, amount: int = 1) -> str:
        """Pay somebody."""
        self.paid.append((to, amount))
        return f"paid {amount} to {to}"


def asks() -> Governance:
    """A policy that asks about payments."""
    return Governance().add_permission_rule("pay", "ask", reason="money moves")


def paying(*people: str) -> Script:
    """A model that pays everybody at once, then says so."""
    wanted = [call("pay", json.dumps({"to": who}), f"c{number}") for number, who in enumerate(people, 1)]
    return Script(calls(*wanted), say("Done."))


async def attended(
    callback: Callable[[PermissionRequestEvent], object], *people: str, governance: Governance | None = None
) -> tuple[Bank, Script, list[StreamEvent]]:
    """A run whose permission requests go to `callback`."""
    bank, script = Bank(), paying(*people or ("ann",))
    runner = runner_of(script, bank.pay, governance=governance or asks(), on_permission_request=callback)
    return bank, script, await events_of(runner.run_streaming("go", session_id="s"))


async def parked(*people: str) -> InMemorySessionLog:
    """A session that waits for permission to pay these people."""
    log = InMemorySessionLog()
    result = await runner_of(paying(*people), Bank().pay, log=log, governance=asks()).run("go", session_id="s")
    assert (result.status, [request.arguments for request in result.pending]) == (
        "suspended",
        [{"to": who, "amount": 1} for who in people],
    )
    return log


def later(log: InMemorySessionLog, bank: Bank, governance: Governance | None = None) -> tuple[RuntimeRunner, Script]:
    """Another process's runner on the same log."""
    script = Script(say("Done."))
    return runner_of(script, bank.pay, log=log, governance=governance or asks()), script


async def test_a_call_that_is_asked_about_runs_once_somebody_said_yes() -> None:
    seen: list[PermissionRequestEvent] = []

    async def yes(request: PermissionRequestEvent) -> bool:
        seen.append(request)
        return True

    bank, script, events = await attended(yes)
    request = PermissionRequestEvent("2", "c1", "pay", {"to": "ann", "amount": 1}, "money moves")
    assert only(PermissionRequestEvent, events) == seen == [request]
    assert (bank.paid, done_of(events).status, only(ToolDeniedEvent, events)) == ([("ann", 1)], "completed", [])
    assert result_texts(script.turns[1]) == ["paid 1 to ann"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, NO),
        (Deny(), NO),
        (Deny("too late \ud800"), "too late \ufffd"),
        (None, f"asking for permission gave a value of type NoneType, not {FITTING}"),
        ("yes", f"asking for permission gave a value of type str, not {FITTING}"),
        (1, f"asking for permission gave a value of type int, not {FITTING}"),
        (Approve, f"asking for permission gave a value of type type, not {FITTING}"),
        (Deny(3), "asking for permission failed: ConfigError: the reason of Deny(…) must be a text, not int"),  # type: ignore[arg-type]
        (
            Approve([1]),  # type: ignore[arg-type]
            "asking for permission failed: ConfigError: the arguments of Approve(…) must be a dict by parameter name, "
            "not list",
        ),
    ],
)
async def test_anything_but_a_yes_denies_and_the_model_reads_why(answer: object, reason: str) -> None:
    bank, script, events = await attended(lambda _: answer)
    assert bank.paid == []
    assert only(ToolDeniedEvent, events) == [ToolDeniedEvent("c1", "pay", "approval", reason)]
    assert only(ToolResultEvent, events) == [ToolResultEvent("c1", f"denied: {reason}", True, "pay", "denied")]
    assert (done_of(events).status, result_texts(script.turns[1])) == ("completed", [f"denied: {reason}"])
    assert_paired(script.turns[1])


@pytest.mark.parametrize("error", [ValueError("the line is down"), asyncio.CancelledError()])
async def test_asking_that_fails_denies(error: BaseException) -> None:
    async def broken(_: PermissionRequestEvent) -> bool:
        raise error

    def broken_in_a_thread(_: PermissionRequestEvent) -> bool:
        raise error

    for callback in (broken, broken_in_a_thread):
        bank, _, events = await attended(callback)
        (denied,) = only(ToolDeniedEvent, events)
        assert (denied.stage, denied.reason.startswith("asking for permission failed: ")) == ("approval", True)
        assert (bank.paid, done_of(events).status) == ([], "completed")


async def test_a_plain_function_is_asked_in_a_thread_and_may_give_an_awaitable() -> None:
    threads: list[bool] = []

    def yes(_: PermissionRequestEvent) -> bool:
        threads.append(threading.current_thread() is threading.main_thread())
        return True

    async def answer() -> Approve:
        return Approve()

    def eventually(_: PermissionRequestEvent) -> object:
        return answer()

    for callback in (yes, eventually):
        bank, _, _ = await attended(callback)
        assert bank.paid == [("ann", 1)]
    assert threads == [False]


async def test_changed_arguments_are_validated_and_judged_by_everything_but_the_question() -> None:
    def governance() -> Governance:
        return asks().limit_param_range("pay", "amount", max=100)

    tries: list[tuple[Approve, list[tuple[str, int]], str]] = [
        (Approve({"to": "bob", "amount": "7"}), [("bob", 7)], "paid 7 to bob"),
        (Approve({"to": "bob"}), [("bob", 1)], "paid 1 to bob"),
        (Approve({"amount": 1}), [], "to"),
        (Approve({"to": "bob", "amount": 101}), [], "denied by constraint: "),
    ]
    for answer, paid, said in tries:
        bank, script, events = await attended(lambda _, answer=answer: answer, governance=governance())  # type: ignore[misc]
        assert (bank.paid, len(only(PermissionRequestEvent, events))) == (paid, 1)
        assert said in result_texts(script.turns[1])[0]
    assert [denied.stage for denied in only(ToolDeniedEvent, events)] == ["constraint"]


async def test_a_block_holds_against_an_approval() -> None:
    governance = asks()

    async def block_and_allow(_: PermissionRequestEvent) -> bool:
        governance.block_tool("pay")
        return True

    bank, _, events = await attended(block_and_allow, governance=governance)
    assert bank.paid == []
    assert only(ToolDeniedEvent, events) == [ToolDeniedEvent("c1", "pay", "veto", 'the tool "pay" is blocked')]


async def test_two_requests_of_a_turn_are_asked_at_once_and_answered_in_any_order() -> None:
    asked: list[str] = []
    both, first_may = asyncio.Event(), asyncio.Event()

    async def answer(request: PermissionRequestEvent) -> bool:
        asked.append(request.call_id)
        if len(asked) == 2:
            both.set()
        await both.wait()
        if request.call_id == "c1":
            await first_may.wait()
        else:
            first_may.set()
        return request.call_id == "c1"

    bank, script, events = await attended(answer, "ann", "bob")
    assert (sorted(asked), bank.paid) == (["c1", "c2"], [("ann", 1)])
    assert result_texts(script.turns[1]) == ["paid 1 to ann", f"denied: {NO}"]
    assert [event.call_id for event in only(ToolResultEvent, events)] == ["c2", "c1"]


async def test_a_question_that_is_never_answered_is_cancelled_with_the_run() -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def never(_: PermissionRequestEvent) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return True

    bank, log = Bank(), InMemorySessionLog()
    runner = runner_of(paying("ann"), bank.pay, log=log, governance=asks(), on_permission_request=never)
    run = asyncio.ensure_future(runner.run("go", session_id="s").result())
    await asked.wait()
    runner.interrupt("s")
    result = await run
    assert (result.status, result.pending, cancelled.is_set(), bank.paid) == ("user_abort", (), True, [])
    assert await kinds_of(log, "s") == ["started", "replied", "judged", "settled", "ended"]


async def test_a_function_that_hangs_in_its_thread_is_left_behind_when_the_run_stops() -> None:
    asked, leave = threading.Event(), threading.Event()

    def hangs(_: PermissionRequestEvent) -> bool:
        asked.set()
        leave.wait(20)
        return True

    bank = Bank()
    runner = runner_of(paying("ann"), bank.pay, governance=asks(), on_permission_request=hangs)
    run = asyncio.ensure_future(runner.run("go").result())
    assert await asyncio.to_thread(asked.wait, 20)
    runner.interrupt()
    assert (await run).status == "user_abort"
    leave.set()
    assert bank.paid == []


async def test_the_time_of_the_goal_goes_on_while_somebody_is_asked() -> None:
    asked = asyncio.Event()

    async def never(_: PermissionRequestEvent) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    with ManualClock() as clock:
        runner = runner_of(paying("ann"), Bank().pay, governance=asks(), on_permission_request=never, timeout_ms=1_000)
        run = asyncio.ensure_future(runner.run("go").result())
        await asked.wait()
        await clock.advance(1.001)
        assert (await run).status == "timeout"


async def test_without_a_callback_the_run_parks_and_any_process_answers() -> None:
    bank, log = Bank(), InMemorySessionLog()
    runner = runner_of(paying("ann"), bank.pay, log=log, governance=asks())
    events = await events_of(runner.run_streaming("go", session_id="s"))
    request = PendingRequest("2", "approval", "c1", "pay", {"to": "ann", "amount": 1}, reason="money moves")
    assert (done_of(events).status, done_of(events).pending, bank.paid) == ("suspended", (request,), [])
    assert await kinds_of(log, "s") == ["started", "replied", "judged"]
    assert await runner.pending("s") == (request,)

    for answer, paid, text in (
        (True, [("ann", 1)], "paid 1 to ann"),
        (Approve({"to": "bob", "amount": 2}), [("bob", 2)], "paid 2 to bob"),
        (False, [], f"denied: {NO}"),
        (Deny("not today"), [], "denied: not today"),
    ):
        elsewhere = Bank()
        other, script = later(await copied(log, "s"), elsewhere)
        resumed = await events_of(other.resume("s", answers={"2": answer}))
        assert (done_of(resumed).status, elsewhere.paid) == ("completed", paid)
        assert result_texts(script.turns[0]) == [text]
        assert [denied.stage for denied in only(ToolDeniedEvent, resumed)] == ([] if paid else ["approval"])


async def test_an_answer_is_taken_once_and_only_if_it_fits() -> None:
    log = await parked("ann", "bob")
    before = await log.read("s")
    for wrong in ("yes", 1, None, {"to": "bob"}):
        with pytest.raises(ConfigError, match=r"asks whether a call of 'pay' may run: answer True, False"):
            await later(log, Bank())[0].resume("s", answers={"c1": wrong})
    for broken in (Approve({1: 2}), Approve({"to": object()}), Deny(b"no")):  # type: ignore[dict-item, arg-type]
        with pytest.raises(ConfigError, match=r"Approve\(…\)|Deny\(…\)"):
            later(log, Bank())[0].resume("s", answers={"c1": broken})
    assert await log.read("s") == before
    some = await later(log, Bank())[0].resume("s", answers={"c1": False})
    assert (some.status, [request.arguments for request in some.pending]) == ("suspended", [{"to": "bob", "amount": 1}])
    with pytest.raises(ConfigError, match="answered before"):
        await later(log, Bank())[0].resume("s", answers={"c1": True})
    bank = Bank()
    runner, script = later(log, bank)
    assert (await runner.resume("s", answers={"c2": True})).status == "completed"
    assert (bank.paid, result_texts(script.turns[0])) == ([("bob", 1)], [f"denied: {NO}", "paid 1 to bob"])


async def test_a_tools_own_question_takes_no_approval() -> None:
    async def ask() -> AsyncIterator[str | Suspend]:
        yield json.dumps((yield Suspend("which?")))

    log = InMemorySessionLog()
    runner = runner_of(Script(calls(call("ask")), say("ok")), ask, log=log)
    (request,) = (await runner.run("go", session_id="s")).pending
    for answer in (Approve(), Deny("no")):
        with pytest.raises(ConfigError, match="a question of the tool 'ask' itself"):
            await runner.resume("s", answers={request.request_id: answer})
    assert (await runner.resume("s", answers={request.request_id: True})).status == "completed"


async def test_a_parked_session_is_judged_by_the_policy_of_the_day_that_answers() -> None:
    log = await parked("ann")
    bank = Bank()
    runner, script = later(log, bank, Governance().block_tool("pay"))
    events = await events_of(runner.resume("s", answers={"c1": True}))
    assert ([denied.stage for denied in only(ToolDeniedEvent, events)], bank.paid) == (["veto"], [])
    assert result_texts(script.turns[0])[0].startswith("denied by veto")


async def test_a_callback_in_a_later_process_answers_what_was_parked() -> None:
    log = await parked("ann", "bob")
    seen: list[PermissionRequestEvent] = []

    async def yes(request: PermissionRequestEvent) -> bool:
        seen.append(request)
        return request.call_id == "c2"

    bank, script = Bank(), Script(say("Done."))
    runner = runner_of(script, bank.pay, log=log, governance=asks(), on_permission_request=yes)
    assert (await runner.resume("s")).status == "completed"
    assert sorted(seen, key=lambda request: request.call_id) == [
        PermissionRequestEvent("2", "c1", "pay", {"to": "ann", "amount": 1}, "money moves"),
        PermissionRequestEvent("3", "c2", "pay", {"to": "bob", "amount": 1}, "money moves"),
    ]
    assert bank.paid == [("bob", 1)]


async def test_an_approval_is_of_the_arguments_that_were_shown_and_of_no_others() -> None:
    log = await parked("ann")
    ran: list[str] = []

    @tool
    async def pay(to: str, amount: int = 1) -> str:
        """Pay somebody."""
        ran.append(to)
        return "paid"

    @tool(name="pay")
    async def dearer(to: str, amount: int = 1_000) -> str:
        """Pay somebody."""
        ran.append(f"{amount} to {to}")
        return "paid"

    @tool(name="pay")
    async def stricter(to: int) -> str:
        """Pay an account."""
        ran.append(str(to))
        return "paid"

    for changed in (stricter, dearer, pay):
        script = Script(say("Done."))
        runner = runner_of(script, changed, log=await copied(log, "s"), governance=asks())
        events = await events_of(runner.resume("s", answers={"c1": True}))
        assert (done_of(events).status, only(ToolResultEvent, events)[0].is_error) == ("completed", changed is stricter)
    assert ran == ["1 to ann", "ann"], "what was left out is what it was when it was shown"


async def test_an_approval_outlives_a_crash_before_its_tool_begins() -> None:
    log = await parked("ann")
    await later(log, Bank())[0].resume("s", answers={"c1": True})
    assert (await kinds_of(log, "s"))[3:7] == ["resumed", "answered", "judged", "begun"]
    for records in (5, 6):
        bank = Bank()
        runner, _ = later(await copied(log, "s", records), bank)
        events = await events_of(runner.resume("s"))
        assert (done_of(events).status, bank.paid) == ("completed", [("ann", 1)])
        assert only(PermissionRequestEvent, events) == []


async def test_a_new_goal_withdraws_what_was_asked() -> None:
    log = await parked("ann")
    runner, script = later(log, Bank())
    events = await events_of(runner.run_streaming("something else", session_id="s"))
    assert [event.error_kind for event in only(ToolResultEvent, events)] == ["withdrawn"]
    assert await runner.pending("s") == ()
    assert_paired(script.turns[0])


async def test_calls_beside_a_question_run_before_the_session_parks() -> None:
    done: list[str] = []

    async def look() -> str:
        done.append("looked")
        return "seen"

    script = Script(calls(call("pay", '{"to":"ann"}', "c1"), call("look", "{}", "c2")), say("Done."))
    bank, log = Bank(), InMemorySessionLog()
    runner = runner_of(script, bank.pay, look, log=log, governance=asks())
    result = await runner.run("go", session_id="s")
    assert (result.status, done, bank.paid) == ("suspended", ["looked"], [])
    await runner.resume("s", answers={"c1": True})
    assert (done, bank.paid, result_texts(script.turns[1])) == (["looked"], [("ann", 1)], ["paid 1 to ann", "seen"])


@pytest.mark.parametrize("wrong", [True, "ask", Deny()])
def test_a_callback_that_is_no_function_is_refused_when_the_options_are_made(wrong: object) -> None:
    with pytest.raises(ConfigError, match="on_permission_request must be a function of a PermissionRequestEvent"):
        RuntimeOptions(provider=Script(), on_permission_request=wrong)  # type: ignore[arg-type]


async def test_a_plane_without_the_tool_refuses_an_approved_call() -> None:
    log = await parked("ann")
    script: Script = Script(say("Done."))
    options = RuntimeOptions(
        provider=script, session_log=log, execution_plane=LocalExecutionPlane(), governance=asks(), max_tokens=10_000
    )
    events: Sequence[StreamEvent] = await events_of(RuntimeRunner(options).resume("s", answers={"c1": True}))
    assert [event.error_kind for event in only(ToolResultEvent, events)] == ["unknown_tool"]
