"""Bound secrets in whatever is shown, piece by piece and in whatever escapes; and calls that wait for an answer."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator

import pytest
from doubles import Script, call, calls, done_of, events_of, only, result_texts, runner_of, say

from deepstrike import (
    Approve,
    Governance,
    InMemorySessionLog,
    McpExecutionPlane,
    Suspend,
    ToolContext,
    ToolDeltaEvent,
    ToolResultEvent,
    secrets,
    tool,
)
from deepstrike.execution.sandbox_access import check_access
from deepstrike.providers.base import Finish
from deepstrike.secrets import HIDDEN, Bound, Veil, binding
from deepstrike.stream import TextDelta, ThinkingDelta

KEY = "hunter2-hunter2"
ODD = ('pa"ss\\wo"rd1', "line1\nline2xx", "pässwörtér12", "abc\x01defgh\x7f", "sécrét😀key12", "a/b/c\\\\server\\")


@pytest.fixture(autouse=True)
def nothing_else_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test binds for itself."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY)


# ---- in whatever escapes


def nested(value: object, depth: int, dice: random.Random) -> str:
    """JSON within JSON, by encoders of different habits."""
    text = json.dumps({"x": value}, ensure_ascii=dice.random() < 0.5)
    if dice.random() < 0.5:
        text = text.replace("/", r"\/")
    return text if depth == 1 else nested(text, depth - 1, dice)


@pytest.mark.parametrize("value", [KEY, *ODD])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 6])
def test_given_json_within_json_when_hidden_then_no_level_of_it_holds_the_secret(value: str, depth: int) -> None:
    secrets.bind(value)
    dice = random.Random(depth)

    for _ in range(8):
        text: object = secrets.bound().hidden(nested(value, depth, dice))
        for _ in range(depth):
            assert isinstance(text, str)
            text = json.loads(text)["x"]
        assert text == HIDDEN


@pytest.mark.parametrize("value", ["pässwörtér12", "sécrét😀key12", KEY])
@pytest.mark.parametrize("upper", [True, False])
def test_given_every_character_as_an_escape_when_hidden_then_it_is_found(value: str, upper: bool) -> None:
    secrets.bind(value)
    data = value.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    escaped = "".join(f"\\u{unit:04X}" if upper else f"\\u{unit:04x}" for unit in units)

    assert json.loads(secrets.bound().hidden(f'{{"x":"{escaped}"}}')) == {"x": HIDDEN}


def test_given_a_number_and_a_text_that_are_bound_when_hidden_then_both_are_and_it_stays_json() -> None:
    secrets.bind("1234567890123")

    hidden = secrets.bound().hidden(json.dumps({"pin": 1234567890123, "in": [json.dumps({"p": KEY})], KEY: 1}))

    assert json.loads(hidden) == {"pin": HIDDEN, "in": [json.dumps({"p": HIDDEN})], HIDDEN: 1}


async def test_given_results_and_arguments_in_odd_forms_when_run_then_log_prompt_and_events_hold_no_secret() -> None:
    secrets.bind("pässwörtér12", ODD[0])
    dotnet = '{"password":"p\\u00E4ssw\\u00F6rt\\u00E9r12"}'
    deep = json.dumps({"body": json.dumps({"data": json.dumps({"pw": ODD[0]})})})

    async def show(which: str, given: str) -> str:
        got.append(given)
        return dotnet if which == "dotnet" else deep

    got: list[str] = []
    log = InMemorySessionLog()
    wanted = [
        call("show", json.dumps({"which": name, "given": given}), name)
        for name, given in (("dotnet", dotnet), ("deep", deep))
    ]
    script = Script(calls(*wanted), say("ok"))
    events = await events_of(runner_of(script, show, log=log).run_streaming("go", session_id="s"))

    assert sorted(got) == sorted([dotnet, deep])
    hidden = ['{"password":"[secret]"}', json.dumps({"body": json.dumps({"data": json.dumps({"pw": HIDDEN})})})]
    assert result_texts(script.turns[1]) == hidden
    everything = repr(events) + repr(script.turns) + b"".join(await log.read("s")).decode()
    assert not any(part in everything for part in ("00E4ssw", "00f6rt", "wo\\", "rd1", "pässw"))


@pytest.mark.parametrize("hostile", ["\\" * 300_000, "\\u0068" * 50_000, "h" * 300_000 + "\\u"])
def test_given_a_text_made_to_take_long_when_hidden_then_it_is_left_as_it_is(hostile: str) -> None:
    secrets.bind(*ODD)

    assert secrets.bound().hidden(hostile) == hostile


# ---- piece by piece


def pieces_of(text: str, dice: random.Random) -> Iterator[str]:
    while text:
        size = dice.randint(1, 6)
        yield text[:size]
        text = text[size:]


def test_given_any_cut_when_pieces_pass_then_together_they_are_the_hidden_text() -> None:
    secrets.bind("hunter2-hunter2-longer", "hhhhhhhh", "ter2-hunter3")
    text = f"h {KEY} hunter2-hunter2-longer hhhhhhhhh hunter2-hunter ter2-hunter3hunter2- {KEY}{KEY} hun"
    dice = random.Random(7)

    for patience in (1, 4):
        for _ in range(300):
            veil = Veil(patience)
            shown = "".join([*map(veil.passed, pieces_of(text, dice)), veil.rest()])
            if patience == 1:
                assert shown == secrets.bound().hidden(text)
            assert not any(value in shown for value in (KEY, "hhhhhhhh", "ter2-hunter3"))


def test_given_nothing_like_a_secret_when_a_piece_passes_then_it_is_shown_at_once_and_whole() -> None:
    veil = Veil()

    assert [veil.passed(piece) for piece in ("plain ", "words, a", "n h", "alf")] == [
        "plain ",
        "words, a",
        "n ",
        "half",
    ]


async def test_given_a_secret_split_over_deltas_when_a_model_answers_then_none_of_it_is_shown() -> None:
    thought = [ThinkingDelta(piece) for piece in ("is it hun", "ter2-hun", "ter2?")]
    said = [TextDelta(piece) for piece in ("it was hunt", "er2-hunter2", " or h")]
    script = Script([*thought, *said, Finish("stop")])
    events = await events_of(runner_of(script).run_streaming("go"))

    assert "".join(event.delta for event in only(ThinkingDelta, events)) == f"is it {HIDDEN}?"
    assert "".join(event.delta for event in only(TextDelta, events)) == f"it was {HIDDEN} or h"
    assert "" not in [event.delta for event in only(TextDelta, events)]


async def test_given_a_tool_that_shows_a_secret_when_run_then_deltas_chunks_and_progress_hold_none() -> None:
    async def tell(context: ToolContext) -> AsyncIterator[object]:
        context.emit(f"progress {KEY}")
        context.emit("50 rows with h")
        context.emit("unter2-hunter2 in them")
        yield "the key is hun"
        yield "ter2-hunter2!"
        yield {"key": KEY}

    events = await events_of(runner_of(Script(calls(call("tell")), say("ok")), tell).run_streaming("go"))
    deltas = only(ToolDeltaEvent, events)
    (result,) = only(ToolResultEvent, events)

    assert KEY not in repr(events)
    assert [event.chunk for event in deltas if event.chunk is not None] == [{"key": HIDDEN}]
    assert [event.delta for event in deltas if "rows" in event.delta] == ["50 rows with h"]
    assert f"progress {HIDDEN}" in [event.delta for event in deltas]
    assert result.content == f'the key is {HIDDEN}!\n{{"key":"{HIDDEN}"}}'


# ---- calls that wait


@pytest.mark.parametrize("callback", [True, False])
async def test_given_a_call_with_a_number_that_is_a_secret_when_approved_then_the_tool_gets_it(callback: bool) -> None:
    async def unlock(pin: int) -> str:
        got.append(pin)
        return "open"

    secrets.bind("1234567890123")
    got: list[int] = []
    runner = runner_of(
        Script(calls(call("unlock", '{"pin":1234567890123}')), say("ok")),
        unlock,
        governance=Governance("ask"),
        on_permission_request=(lambda _: True) if callback else None,
    )
    result = await runner.run("go", session_id="s")
    if not callback:
        assert dict(result.pending[0].arguments) == {"pin": HIDDEN}
        result = await runner.resume("s", answers={result.pending[0].request_id: True})

    assert (result.status, got) == ("completed", [1234567890123])


async def test_given_a_call_that_waits_when_answered_by_another_runner_then_it_is_not_run_and_the_model_reads_why() -> (
    None
):
    async def unlock(pin: int) -> str:
        raise AssertionError(pin)

    secrets.bind("1234567890123")
    log, rules = InMemorySessionLog(), Governance("ask")
    script = Script(calls(call("unlock", '{"pin":1234567890123}')), say("ok"))
    parked = await runner_of(script, unlock, log=log, governance=rules).run("go", session_id="s")
    other = runner_of(Script(say("ok")), unlock, log=log, governance=rules)
    events = await events_of(other.resume("s", answers={parked.pending[0].request_id: Approve()}))

    (result,) = only(ToolResultEvent, events)
    assert (result.error_kind, done_of(events).status) == ("not_run", "completed")
    assert result.content.startswith("not run: a secret was withheld")


async def test_given_a_tool_that_asks_when_it_is_called_anew_here_then_it_gets_its_secret_again() -> None:
    @tool
    async def log_in(password: str) -> AsyncIterator[str | Suspend]:
        """Log in."""
        got.append(password)
        got.append((yield Suspend("sure?")))
        yield "in"

    got: list[object] = []
    script = Script(calls(call("log_in", json.dumps({"password": KEY}))), say("ok"))
    runner = runner_of(script, log_in)
    parked = await runner.run("go", session_id="s")
    result = await runner.resume("s", answers={parked.pending[0].request_id: "yes"})

    assert (result.status, got) == ("completed", [KEY, KEY, "yes"])


# ---- what is declared for others


def test_given_variables_and_headers_named_like_secrets_when_declared_then_they_are_bound() -> None:
    pytest.importorskip("mcp", reason="the official client is not installed")
    McpExecutionPlane("server", env={"API_TOKEN": "token-of-the-server-1", "REGION": "north-north-north-1"})
    McpExecutionPlane("https://u:password-of-the-u-1@host/mcp?key=key-in-the-query-1", headers={"X-Auth": "auth-" * 4})
    check_access([], [], None, False, {"DB_PASSWORD": "password-of-the-db"}, None)

    said = "token-of-the-server-1 north-north-north-1 password-of-the-u-1 key-in-the-query-1 auth-auth-auth-auth- "
    assert secrets.bound().hidden(said + "password-of-the-db") == (
        f"{HIDDEN} north-north-north-1 {HIDDEN} {HIDDEN} {HIDDEN} {HIDDEN}"
    )
