"""Sub-agents whose calls wait with a bound secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from families import Cast, delegates, results_of, runner_with

from deepstrike import Approve, Governance, InMemorySessionLog, RuntimeRunner, secrets
from deepstrike.providers.base import ToolCall
from deepstrike.secrets import HIDDEN, Bound, binding

if TYPE_CHECKING:
    from deepstrike import RunResult

KEY = "hunter2-hunter2"
TASK = f"log in with {KEY}"
GOT: list[str] = []


@pytest.fixture(autouse=True)
def one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is bound."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY)
    GOT.clear()


async def log_in(password: str, note: str = "") -> str:
    """Log in."""
    GOT.append(password)
    return f"in as {password}"


def last(request: object) -> str:
    """What the last result says."""
    return results_of(request)[-1]  # type: ignore[arg-type]


def runner(log: InMemorySessionLog, password: str = KEY) -> RuntimeRunner:
    """A root whose sub-agent is told the secret and logs in, which is asked about."""
    wanted = ToolCall("call_0", "log_in", json.dumps({"password": password}))
    play = Cast({"go": [[delegates(TASK)], last], f"log in with {HIDDEN}": [[wanted], last]})
    return runner_with(play, log_in, log=log, governance=asks())


def later(log: InMemorySessionLog) -> RuntimeRunner:
    """Another process's runner on the same log."""
    play = Cast({"go": [last], f"log in with {HIDDEN}": [last]})
    return runner_with(play, log_in, log=log, governance=asks())


def asks() -> Governance:
    return Governance().add_permission_rule("log_in", "ask")


async def answered(log: InMemorySessionLog, parked: RunResult, by: RuntimeRunner, answer: object) -> RunResult:
    (request,) = parked.pending
    done = await by.resume("s", answers={request.request_id: answer})
    for session in await log.sessions():
        assert KEY.encode() not in b"\n".join(await log.read(session))
    return done


@pytest.mark.parametrize("answer", [True, Approve({"password": HIDDEN, "note": "mine"})])
async def test_the_runner_that_was_given_the_secret_has_it_for_its_sub_agents_too(answer: object) -> None:
    log = InMemorySessionLog()
    here = runner(log)
    done = await answered(log, await here.run("go", session_id="s"), here, answer)
    assert (done.status, done.text, GOT) == ("completed", f"in as {HIDDEN}", [KEY])


@pytest.mark.parametrize("answer", [True, Approve({"password": HIDDEN, "note": "mine"})])
async def test_another_runner_does_not_run_the_call_and_the_sub_agent_reads_why(answer: object) -> None:
    log = InMemorySessionLog()
    done = await answered(log, await runner(log).run("go", session_id="s"), later(log), answer)
    assert (done.status, GOT) == ("completed", [])
    assert done.text.startswith("not run: a secret was withheld")


@pytest.mark.parametrize("given", [KEY, "?"])
async def test_a_secret_that_is_the_answer_reaches_the_tool_in_whatever_runner_it_is_given(given: str) -> None:
    log = InMemorySessionLog()
    parked = await runner(log, given).run("go", session_id="s")
    done = await answered(log, parked, later(log), Approve({"password": KEY}))
    assert (done.status, GOT) == ("completed", [KEY])
