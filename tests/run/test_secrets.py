"""Bound secrets: never in the kernel, the log or a prompt, whichever way they come."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from doubles import Script, call, calls, copied, done_of, events_of, only, result_texts, runner_of, say

from deepstrike import (
    Approve,
    ConfigError,
    Governance,
    InMemorySessionLog,
    OpenAIProvider,
    PermissionRequestEvent,
    Suspend,
    ToolCallEvent,
    ToolResultEvent,
    secrets,
    tool,
)
from deepstrike.providers.base import Artefact, Finish, ModelEvent
from deepstrike.secrets import HIDDEN, Bound, binding
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.tools.definition import Effect

KEY = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def nothing_else_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test binds for itself."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY)


class Vault:
    """Tools that get and give a secret."""

    def __init__(self) -> None:
        self.got: list[str] = []

    async def log_in(self, password: str, note: str = "") -> str:
        """Log in."""
        self.got.append(password)
        return f"{password} was right"


async def recorded(log: InMemorySessionLog) -> bytes:
    """All that the session's log holds."""
    return b"\n".join(await log.read("s"))


def login(password: str = KEY) -> list[ModelEvent]:
    return [*calls(call("log_in", json.dumps({"password": password}), "c1"))]


async def test_whatever_a_run_is_given_is_recorded_and_prompted_without_the_secret() -> None:
    vault, log = Vault(), InMemorySessionLog()
    script = Script(
        [ThinkingDelta(f"is it {KEY}? "), TextDelta(f"I try {KEY}. "), *login()],
        say(f"It was {KEY}."),
    )
    runner = runner_of(script, vault.log_in, log=log, system_prompt=f"The key is {KEY}.")
    events = await events_of(runner.run_streaming(f"log in with {KEY}", session_id="s", criteria=[f"not {KEY}"]))
    assert (vault.got, done_of(events).status) == ([KEY], "completed")
    assert [dict(event.arguments) for event in only(ToolCallEvent, events)] == [{"password": HIDDEN, "note": ""}]
    assert [event.content for event in only(ToolResultEvent, events)] == [f"{HIDDEN} was right"]
    assert KEY.encode() not in await recorded(log)
    assert KEY not in repr(script.turns) + repr([(request.system_stable, request.tools) for request in script.requests])
    assert result_texts(script.turns[1]) == [f"{HIDDEN} was right"]


async def test_an_artefact_is_left_as_it_came_since_its_signature_holds_over_every_byte() -> None:
    log, artefact = InMemorySessionLog(), json.dumps({"signature": KEY})
    script = Script([Artefact("chat", artefact), TextDelta(f"hello {KEY}"), Finish("stop")], say("ok"))
    runner = runner_of(script, log=log)
    await runner.run("go", session_id="s")
    await runner.run("go on", session_id="s")
    assert KEY in repr(script.turns[1])
    assert f"hello {KEY}" not in repr(script.turns[1])


async def test_a_large_result_is_kept_without_the_secret() -> None:
    async def dump() -> str:
        return f"{KEY} " * 5_000

    log, script = InMemorySessionLog(), Script(calls(call("dump")), say("ok"))
    await runner_of(script, dump, log=log, max_tokens=8_000).run("go", session_id="s")
    (line,) = [line for line in await log.read("s") if b'"blob"' in line]
    blob = json.loads(line)["event"]["result"]["blob"]
    assert await log.get_blob(blob["ref"], 0, blob["bytes"]) == f"{HIDDEN} ".encode() * 5_000
    assert KEY.encode() not in await recorded(log)


@pytest.mark.parametrize("effect", ["once", "idempotent", "read"])
async def test_after_a_crash_a_call_that_held_a_secret_is_never_run_again_by_itself(effect: Effect) -> None:
    ran: list[str] = []

    @tool(effect=effect)
    async def log_in(password: str) -> str:
        """Log in."""
        ran.append(password)
        return "in"

    log = InMemorySessionLog()
    await runner_of(Script(login(), say("ok")), log_in, log=log).run("go", session_id="s")
    assert ran == [KEY]
    for records in (2, 3, 4):  # replied, judged, begun
        events = await events_of(runner_of(Script(say("ok")), log_in, log=await copied(log, "s", records)).resume("s"))
        (result,) = only(ToolResultEvent, events)
        lost = records == 4 and effect == "once"
        assert (result.error_kind, done_of(events).status) == ("outcome_unknown" if lost else "not_run", "completed")
    assert ran == [KEY]


async def test_what_the_model_copies_from_a_hidden_text_is_run_as_it_stands() -> None:
    vault = Vault()
    await runner_of(Script(login(HIDDEN), say("ok")), vault.log_in).run("go")
    assert vault.got == [HIDDEN]


async def test_answers_reach_their_tools_and_are_recorded_without_the_secret() -> None:
    async def ask() -> AsyncIterator[str | Suspend]:
        got.append((yield Suspend("password?")))
        yield "ok"

    got: list[object] = []
    for attended in (True, False):
        log = InMemorySessionLog()
        runner = runner_of(
            Script(calls(call("ask")), say("ok")), ask, log=log, on_tool_suspend=(lambda _: KEY) if attended else None
        )
        result = await runner.run("go", session_id="s")
        if not attended:
            result = await runner.resume("s", answers={result.pending[0].request_id: KEY})
        assert (result.status, KEY.encode() in await recorded(log)) == ("completed", False)
    assert got == [KEY, KEY]


async def test_arguments_that_a_person_gives_reach_the_tool_and_are_recorded_without_the_secret() -> None:
    vault, log = Vault(), InMemorySessionLog()
    shown: list[PermissionRequestEvent] = []

    async def fill_in(request: PermissionRequestEvent) -> Approve:
        shown.append(request)
        return Approve({"password": KEY})

    governance = Governance("ask")
    runner = runner_of(
        Script(login("?"), say("ok")), vault.log_in, log=log, governance=governance, on_permission_request=fill_in
    )
    await runner.run("go", session_id="s")
    assert (vault.got, KEY.encode() in await recorded(log)) == ([KEY], False)
    assert [dict(request.arguments) for request in shown] == [{"password": "?", "note": ""}]


async def test_a_providers_key_is_bound_when_the_provider_is_made() -> None:
    key = "sk-test-THISISNOTREAL-0123456789abcdef"
    OpenAIProvider(api_key=key, headers={"X-Tenant": "production-cluster", "X-Auth": "Bearer 0123456789abcdefXYZ"})

    async def environment() -> str:
        return f"OPENAI_API_KEY={key} tenant=production-cluster auth=0123456789abcdefXYZ sk-ill"

    script = Script(calls(call("environment")), say("ok"))
    await runner_of(script, environment).run("go")
    assert result_texts(script.turns[1]) == [f"OPENAI_API_KEY={HIDDEN} tenant=production-cluster auth={HIDDEN} sk-ill"]


def test_json_stays_json_in_whatever_form_the_secret_stands_in_it() -> None:
    secrets.bind('a"b\\c/d é', "31415926")
    hide = secrets.bound().hidden
    odd = 'a"b\\c/d é'
    for ascii_only in (True, False):

        def written(value: object, ascii_only: bool = ascii_only) -> str:
            return json.dumps(value, ensure_ascii=ascii_only)

        assert json.loads(hide(written(odd))) == HIDDEN
        assert json.loads(hide(written({"x": [odd, odd + "!"]}))) == {"x": [HIDDEN, f"{HIDDEN}!"]}
        assert json.loads(json.loads(hide(written(written({"x": odd}))))) == {"x": HIDDEN}
    assert json.loads(hide('{"pin":31415926,"big":12345678901234567890123,"f":1.5}')) == {
        "pin": HIDDEN,
        "big": 12345678901234567890123,
        "f": 1.5,
    }
    assert hide("a%22b%5Cc%2Fd%20%C3%A9 and pin 31415926") == f"{HIDDEN} and pin {HIDDEN}"


@pytest.mark.parametrize("harmless", ["sk-ill", "task-123456789012345678901234", "Bearer of bad news", "9f" * 20])
def test_harmless_text_is_left_alone(harmless: str) -> None:
    assert secrets.bound().hidden(harmless) == harmless


@pytest.mark.parametrize("wrong", ["short", "", 12345678, None, b"12345678"])
def test_what_is_no_secret_cannot_be_bound(wrong: object) -> None:
    with pytest.raises(ConfigError, match="at least 8 characters"):
        secrets.bind(wrong)  # type: ignore[arg-type]


def test_a_snapshot_shows_no_value() -> None:
    assert KEY not in repr(secrets.bound())
