"""The commands on kept sessions, as their users see them: real processes on a log that this process has written."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import deepstrike
from deepstrike import (
    InMemorySessionLog,
    LocalExecutionPlane,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    SessionError,
    SessionLog,
    Suspend,
    tool,
)
from deepstrike.cli.lines import pending_lines
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.providers.replayed import ReplayProvider
from deepstrike.providers.scripted import Reply, ScriptedProvider
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog
from deepstrike.stream import PendingRequest, TextDelta
from deepstrike.wire.message import Usage

TOOLS = '''
from deepstrike import Suspend, tool

@tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y

@tool
async def approve(what: str):
    """Ask first."""
    answer = yield Suspend({"approve": what})
    yield f"answered {answer}"
'''
KEY = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
NASTY = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eevil\u2066 \u2028line \x7f"


@tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@tool
async def approve(what: str):  # type: ignore[no-untyped-def]  # as a user writes it
    """Ask first."""
    answer = yield Suspend({"approve": what})
    yield f"answered {answer}"


SUM: Reply = [ToolCall("c1", "add", '{"x": 17, "y": 28}'), Usage(20, 5), Finish("tool_calls")]
DONE: Reply = [TextDelta("It is 45."), Usage(30, 4), Finish("stop")]
ASK: Reply = [ToolCall("c1", "approve", '{"what": "pizza"}'), Finish("tool_calls")]


def keep(log: SessionLog, session_id: str, *replies: Reply, goal: str = "What is 17 + 28?") -> None:
    """Run a goal of a session to whatever end."""
    plane = LocalExecutionPlane().register(add, approve)
    runner = RuntimeRunner(
        RuntimeOptions(provider=ScriptedProvider(replies), session_log=log, execution_plane=plane, max_turns=5)
    )
    with suppress(RunFailed):
        runner.run_sync(goal, session_id=session_id)


async def copy_to(log: SessionLog, session_id: str, records: list[bytes]) -> None:
    """Keep these records as a session."""
    owner = await log.acquire(session_id)
    await log.append(session_id, records, 0, owner=owner)
    await log.release(session_id, owner)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A working directory with tools and, as the default place, two sessions that part and one that waits."""
    (tmp_path / "my_tools.py").write_text(TOOLS)
    log = SqliteSessionLog(tmp_path / "home" / "sessions.db")
    keep(log, "sums", SUM, DONE)
    keep(log, "other", SUM, "It is 46.")
    keep(log, "order", ASK)
    return tmp_path


def sessions_at(home: Path) -> SqliteSessionLog:
    return SqliteSessionLog(home / "home" / "sessions.db")


def command(home: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A command in a pipe; a warning of Python's would be an error."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OPENAI_") and not name.endswith("_API_KEY")
    }
    environment = {
        **kept,
        "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]),
        "DEEPSTRIKE_HOME": str(home / "home"),
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "deepstrike.cli", *arguments],
        cwd=home,
        env=environment,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


async def test_given_a_session_with_sub_agents_when_deleted_then_theirs_go_too_and_others_stay(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path / "logs")
    asks: Reply = [ToolCall("c", "delegate", json.dumps({"task": "Look.", "role": "reader"})), Finish("tool_calls")]
    chief = ScriptedProvider([asks, "Looked.", "Done.", "Hello."])
    runner = RuntimeRunner(RuntimeOptions(provider=chief, session_log=log, sub_agents=True))
    await runner.run("Go.", session_id="chief")
    await runner.run("Hi.", session_id="chief/notes")
    assert await log.sessions() == ["chief", "chief/2", "chief/notes"]
    done = command(tmp_path, "sessions", "delete", "--yes", "chief", "--log", "logs")
    assert (done.returncode, done.stderr) == (0, "")
    assert await log.sessions() == ["chief/notes"]


async def test_given_a_session_with_an_empty_id_when_used_then_it_is_one_like_others(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path / "logs")
    options = RuntimeOptions(provider=ScriptedProvider(["Hello."]), session_log=log)
    await RuntimeRunner(options).run("Hi.", session_id="")
    listed = command(tmp_path, "sessions", "list", "--log", "logs", "--json")
    assert [json.loads(line)["session"] for line in listed.stdout.splitlines()] == [""]
    assert "completed" in command(tmp_path, "sessions", "list", "--log", "logs").stdout
    for words in (("show",), ("verify",), ("export",), ("delete", "--yes")):
        done = command(tmp_path, "sessions", *words, "--log", "logs", "")
        assert (done.returncode, done.stderr) == (0, ""), words
    assert await log.sessions() == []


async def test_given_sessions_that_say_that_they_are_below_each_other_when_listed_then_each_is_there_once(
    tmp_path: Path,
) -> None:
    log, kept = FileSessionLog(tmp_path / "logs"), InMemorySessionLog()
    options = RuntimeOptions(provider=ScriptedProvider(["Hello."] * 2), session_log=kept)
    for name, other in (("a", "b"), ("b", "a")):
        await RuntimeRunner(options).run("Hi.", session_id=name)
        records = await kept.read(name)
        parent = b'"agents":{"parent":{"session":"%b","path":["x-1"]}},"tools"' % other.encode()
        owner = await log.acquire(name)
        await log.append(name, [records[0].replace(b'"tools"', parent, 1), *records[1:]], 0, owner=owner)
        await log.release(name, owner)
    listed = command(tmp_path, "sessions", "list", "--log", "logs", "--json")
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [(row["session"], row["parent"]) for row in rows] == [("a", "b"), ("b", "a")]


def test_given_kept_sessions_when_listed_then_each_says_how_it_stands(home: Path) -> None:
    done = command(home, "sessions", "list")
    as_json = command(home, "sessions", "list", "--json")

    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["sums", "completed"],
        ["other", "completed"],
        ["order", "suspended"],
    ]
    rows = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [(row["session"], row["records"], row["status"], row["pending"], row["goal"]) for row in rows] == [
        ("sums", 7, "completed", 0, "What is 17 + 28?"),
        ("other", 7, "completed", 0, "What is 17 + 28?"),
        ("order", 5, "suspended", 1, "What is 17 + 28?"),
    ]
    assert (done.returncode, done.stderr, as_json.returncode) == (0, "", 0)


def test_given_a_session_when_shown_then_its_goal_calls_results_and_end_are_there(home: Path) -> None:
    done = command(home, "sessions", "show", "sums")

    assert done.returncode == 0
    shown = re.sub(r"(just now|\d+ s ago)|\d+\.\d\d s", "TIME", done.stdout)
    assert shown == (
        "session sums · 1 goal · 2 turns\n"
        "\n"
        "goal      What is 17 + 28?\n"
        "          TIME · scripted · 2 tools\n"
        "turn 1   20 tokens in, 5 out\n"
        '        → add({"x": 17, "y": 28})\n'
        "        ← 45\n"
        "turn 2   30 tokens in, 4 out\n"
        "        It is 45.\n"
        "completed · 2 turns · 59 tokens · TIME\n"
    )


def test_given_a_session_that_waits_when_shown_and_answered_then_it_goes_on(home: Path) -> None:
    shown = command(home, "sessions", "show", "order")
    asked = r'^\? (\S+)  suspension of approve\(what="pizza"\): \{"approve": "pizza"\}$'
    waiting = re.search(asked, shown.stdout, re.MULTILINE)
    assert waiting is not None
    assert shown.stdout.endswith("answer with: deepstrike resume order --answer ID=VALUE --tools MODULE:NAME\n")

    arguments = ("--model", "demo", "--tools", "my_tools:approve", "--tools", "my_tools:add")
    wrong = command(home, "resume", "order", "--answer", "nope=1", *arguments)
    malformed = command(home, "resume", "order", "--answer", "nope", *arguments)
    unanswered = command(home, "resume", "order", *arguments)
    done = command(home, "resume", "order", "--answer", f"{waiting[1]}=true", *arguments)

    assert (wrong.returncode, malformed.returncode, unanswered.returncode, done.returncode) == (2, 2, 6, 0)
    assert f"Open requests: '{waiting[1]}'" in wrong.stderr
    assert "--answer takes ID=VALUE" in malformed.stderr
    assert "suspension of approve" in unanswered.stderr
    assert "← answered True\n" in done.stderr
    assert command(home, "replay", "order").returncode == 0


def test_given_a_run_that_waits_when_its_hint_is_followed_word_for_word_then_it_goes_on(home: Path) -> None:
    log = FileSessionLog(home / "the logs")
    keep(log, "it's order", ASK)
    options = ("--log", "the logs", "--tools", "my_tools:approve", "--model", "demo", "--max-turns", "7")

    waits = command(home, "resume", "it's order", *options)
    (hint,) = (line for line in waits.stderr.splitlines() if line.startswith("answer with: "))
    words = shlex.split(hint.removeprefix("answer with: "))
    request = re.search(r"^\? (\S+) ", waits.stderr, re.MULTILINE)
    assert request is not None
    assert (waits.returncode, words) == (
        6,
        ["deepstrike", "resume", "it's order", "--answer", "ID=VALUE", *options],
    )
    done = command(home, *(word.replace("ID=VALUE", f"{request[1]}=true") for word in words[1:]))

    assert (done.returncode, waits.stderr.count("demo model")) == (0, 0)
    assert "← answered True\n" in done.stderr


def test_given_a_session_in_memory_that_waits_when_it_ends_then_nobody_is_told_to_resume_it() -> None:
    request = PendingRequest("4", "suspension", "c1", "approve", {}, payload="?")
    assert list(pending_lines([request], "s", None))[1:] == [
        "this session was not kept, so nobody can answer it: run the goal with --session ID, then resume that"
    ]


def test_given_an_open_call_when_its_tool_is_not_given_then_nothing_is_recorded_unless_that_is_wanted(
    home: Path,
) -> None:
    before = asyncio.run(sessions_at(home).read("order"))
    (request,) = re.findall(r"^\? (\S+) ", command(home, "sessions", "show", "order").stdout, re.MULTILINE)
    arguments = ("resume", "order", "--answer", f"{request}=true", "--model", "demo")

    refused = command(home, *arguments)
    another = command(home, *arguments, "--tools", "my_tools:add")
    after = asyncio.run(sessions_at(home).read("order"))
    wanted = command(home, *arguments, "--without-tools")

    assert (refused.returncode, another.returncode, after) == (2, 2, before)
    assert "session 'order' has an open call of approve, which no --tools gives" in refused.stderr
    assert wanted.returncode == 0
    assert "✗ approve" in wanted.stderr


def test_given_a_begun_call_when_its_tool_is_not_given_then_nothing_is_recorded(home: Path) -> None:
    records = asyncio.run(sessions_at(home).read("sums"))
    begun = next(index for index, line in enumerate(records) if b'"begun"' in line)
    log = FileSessionLog(home / "crashed")
    asyncio.run(copy_to(log, "sums", records[: begun + 1]))

    refused = command(home, "resume", "sums", "--model", "demo", "--log", "crashed")
    kept = asyncio.run(log.read("sums"))
    done = command(home, "resume", "sums", "--model", "demo", "--log", "crashed", "--tools", "my_tools:add")

    assert (refused.returncode, kept, done.returncode) == (2, records[: begun + 1], 0)
    assert "has an open call of add" in refused.stderr


def test_given_a_session_of_a_real_model_when_only_the_demo_model_is_there_then_resume_refuses_and_records_nothing(
    home: Path,
) -> None:
    records = asyncio.run(sessions_at(home).read("sums"))
    begun = next(index for index, line in enumerate(records) if b'"begun"' in line)
    log = FileSessionLog(home / "crashed")
    asyncio.run(copy_to(log, "sums", records[:begun]))
    arguments = ("resume", "sums", "--log", "crashed", "--tools", "my_tools:add")

    refused = command(home, *arguments)
    kept = asyncio.run(log.read("sums"))
    named = command(home, *arguments, "--model", "demo", "--max-turns", "1")
    further = command(home, *arguments)

    assert (refused.returncode, refused.stdout, kept) == (2, "", records[:begun])
    assert "session 'sums' went on with the model 'scripted', and no key is set" in refused.stderr
    assert "name a model with --model VENDOR:NAME" in refused.stderr
    assert (named.returncode, further.returncode) == (3, 0)  # now it is the demo's own
    assert "model: demo (no key is set" in further.stderr


def test_given_a_completed_session_when_resumed_then_the_recorded_answer_is_printed_and_no_model_named(
    home: Path,
) -> None:
    done = command(home, "resume", "sums")

    assert (done.returncode, done.stdout) == (0, "It is 45.\n")
    assert "model" not in done.stderr


def test_given_a_completed_session_with_a_key_in_its_answer_when_resumed_then_that_is_masked(home: Path) -> None:
    key = "sk-ant-api03-abcdefghijklmnopqrstuvwx"
    runner = RuntimeRunner(RuntimeOptions(provider=ScriptedProvider([f"It is {key}."]), session_log=sessions_at(home)))
    runner.run_sync("Say it", session_id="keys")

    assert command(home, "resume", "keys").stdout == "It is ***.\n"


def test_given_two_answers_to_one_request_when_resumed_then_they_are_refused(home: Path) -> None:
    done = command(home, "resume", "order", "--answer", "4=1", "--answer", "4=2", "--tools", "my_tools:approve")

    assert (done.returncode, done.stderr) == (
        2,
        "error: --answer 4=… stands there twice: give each request one answer\n",
    )


def test_given_a_named_session_when_goals_are_run_then_it_is_kept_and_continued(home: Path) -> None:
    first = command(home, "run", "What is 1 + 2?", "--model", "demo", "--tools", "my_tools:add", "--session", "mine")
    goal = "What is 2 + 3?\n"
    second = command(home, "chat", "--model", "demo", "--tools", "my_tools:add", "--session", "mine", stdin=goal)
    nameless = command(home, "run", "What is 1 + 2?", "--model", "demo", "--tools", "my_tools:add")

    assert (first.returncode, second.returncode, nameless.returncode) == (0, 0, 0)
    assert asyncio.run(sessions_at(home).sessions()) == ["sums", "other", "order", "mine"]
    assert command(home, "sessions", "show", "mine").stdout.startswith("session mine · 2 goals · 4 turns\n")


def test_given_another_log_when_named_then_it_is_used(home: Path) -> None:
    kept = command(home, "run", "hello", "--model", "demo", "--log", "logs", "--session", "../a b")
    listed = command(home, "sessions", "list", "--log", "logs")

    assert (kept.returncode, listed.returncode) == (0, 0)
    assert listed.stdout.startswith("../a b  completed")
    assert asyncio.run(FileSessionLog(home / "logs").sessions()) == ["../a b"]

    nameless = command(home, "run", "hello", "--model", "demo", "--log", "logs")

    named = re.search(r"^session: ([0-9a-f]{16})$", nameless.stderr, re.MULTILINE)
    assert named is not None
    assert asyncio.run(FileSessionLog(home / "logs").sessions()) == ["../a b", named[1]]


def test_given_two_sessions_when_compared_then_the_parting_is_shown_with_its_cause(home: Path) -> None:
    differs = command(home, "sessions", "diff", "sums", "other")
    same = command(home, "sessions", "diff", "sums", "sums")
    as_json = command(home, "sessions", "diff", "sums", "other", "--json")

    assert (differs.returncode, same.returncode, as_json.returncode) == (7, 0, 7)
    assert differs.stdout.startswith(
        "differs behind 1 turns that are the same, at record 5 and record 5 [reply]\n"
        "cause: the same request, another reply of the model\n"
        '  parts[0].text\n    - "It is 45."\n    + "It is 46."\n'
    )
    assert same.stdout == "the same: 2 turns\n"
    told = json.loads(as_json.stdout)
    assert (told["equal"], told["turns"], told["parting"]["kind"]) == (False, 1, "reply")


def test_given_a_session_when_replayed_then_it_is_proved_the_same(home: Path) -> None:
    done = command(home, "replay", "sums")
    as_json = command(home, "replay", "sums", "--json")

    assert (done.returncode, done.stdout) == (
        0,
        "the same: 7 of 7 records came out as recorded, 2 turns, 2 prompts with the recorded digest\n",
    )
    assert json.loads(as_json.stdout)["equal"] is True


async def test_given_a_changed_session_when_replayed_then_record_and_cause_are_told(home: Path) -> None:
    records = await sessions_at(home).read("sums")
    changed = [line.replace(b'"text":"45"', b'"text":"54"') for line in records]
    log = FileSessionLog(home / "changed")
    owner = await log.acquire("sums")
    await log.append("sums", changed, 0, owner=owner)
    await log.release("sums", owner)

    done = command(home, "replay", "sums", "--log", "changed")
    shown = command(home, "sessions", "show", "sums", "--log", "changed")
    verified = command(home, "sessions", "verify", "--log", "changed")

    assert (done.returncode, shown.returncode, verified.returncode) == (7, 8, 8)
    assert done.stdout.startswith(
        "differs at record 5, behind 5 records that are the same\n"
        "recorded replied, came out replied\n"
        "cause: the prompt renders to other bytes"
    )


def test_given_a_session_when_exported_then_the_lines_replay_it(home: Path) -> None:
    done = command(home, "sessions", "export", "sums")

    lines = done.stdout.encode().splitlines()
    assert (done.returncode, lines) == (0, asyncio.run(sessions_at(home).read("sums")))
    plane = LocalExecutionPlane().register(add, approve)
    runner = RuntimeRunner(RuntimeOptions(provider=ReplayProvider(lines), execution_plane=plane, max_turns=5))
    assert runner.run_sync("What is 17 + 28?").text == "It is 45."


def test_given_control_characters_and_keys_in_a_session_when_shown_then_neither_comes_through(home: Path) -> None:
    keep(
        sessions_at(home),
        f"s{NASTY}",
        [ToolCall("c", NASTY, json.dumps({"x": KEY + NASTY})), Finish("tool_calls")],
        f"{NASTY} {KEY}",
        goal=f"{NASTY} {KEY}",
    )
    name = f"s{NASTY}"

    for arguments in (
        ("list",),
        ("list", "--json"),
        ("show", name),
        ("show", name, "--json"),
        ("export", name),
        ("verify", name),
        ("diff", name, "sums"),
    ):
        done = command(home, "sessions", *arguments)
        assert done.returncode in (0, 7), done.stderr
        assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2066\u202e]", done.stdout + done.stderr) == []
        assert KEY not in done.stdout + done.stderr
    raw = command(home, "sessions", "export", name, "--raw")
    assert KEY in raw.stdout
    assert [json.loads(line) for line in raw.stdout.splitlines()] == [
        json.loads(line) for line in asyncio.run(sessions_at(home).read(name))
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("sessions", "show", "nope"),
        ("sessions", "export", "nope"),
        ("sessions", "verify", "nope"),
        ("sessions", "diff", "sums", "nope"),
        ("sessions", "delete", "--yes", "sums", "nope"),
        ("replay", "nope"),
        ("resume", "nope", "--model", "demo"),
    ],
)
def test_given_an_unknown_session_when_asked_for_then_the_command_says_so(
    home: Path, arguments: tuple[str, ...]
) -> None:
    done = command(home, *arguments)

    assert (done.returncode, done.stdout) == (9, "")
    assert "there is no session 'nope'" in done.stderr
    assert asyncio.run(sessions_at(home).sessions()) == ["sums", "other", "order"]


async def test_given_a_live_session_when_resumed_or_deleted_then_the_command_ends_at_once(home: Path) -> None:
    log = sessions_at(home)
    owner = await log.acquire("sums")

    resumed = command(home, "resume", "sums", "--model", "demo")
    run = command(home, "run", "more", "--model", "demo", "--session", "sums")
    deleted = command(home, "sessions", "delete", "--yes", "sums")
    shown = command(home, "sessions", "show", "sums")

    assert (resumed.returncode, run.returncode, deleted.returncode, shown.returncode) == (11, 11, 11, 0)
    await log.release("sums", owner)


async def test_given_a_session_of_a_newer_version_when_read_then_the_format_is_named(home: Path) -> None:
    records = await sessions_at(home).read("sums")
    log = FileSessionLog(home / "newer")
    owner = await log.acquire("sums")
    await log.append("sums", [line.replace(b'"format":1', b'"format":2') for line in records], 0, owner=owner)
    await log.release("sums", owner)

    commands = (
        ("sessions", "show", "sums"),
        ("replay", "sums"),
        ("resume", "sums", "--model", "demo"),
        ("run", "more", "--session", "sums", "--model", "demo"),
    )
    for arguments in commands:
        done = command(home, *arguments, "--log", "newer")
        assert done.returncode == 10
        assert "format 2" in done.stderr
    assert len(await log.read("sums")) == len(records)
    assert "unreadable" in command(home, "sessions", "list", "--log", "newer").stdout


async def test_given_a_record_that_only_a_newer_version_knows_when_gone_on_then_it_is_named_and_nothing_written(
    home: Path,
) -> None:
    records = [*(await sessions_at(home).read("sums")), b'{"seq":7,"at":9,"event":{"type":"foretold"}}']
    log = FileSessionLog(home / "newer")
    await copy_to(log, "sums", records)

    runner = RuntimeRunner(RuntimeOptions(provider=ScriptedProvider(["more"]), session_log=log))
    for work in (runner.resume("sums"), runner.run_streaming("more", session_id="sums")):
        with pytest.raises(SessionError, match=r'record 7 is a "foretold".*go on with the release') as caught:
            await work.result()
        assert caught.value.code == "newer_format"
    assert await log.read("sums") == records


def test_given_damage_when_read_then_the_record_is_named_and_the_others_are_listed(home: Path) -> None:
    log = FileSessionLog(home / "logs")
    keep(log, "good", "Fine.")
    keep(log, "bad", SUM, "It is 45.")
    path = next(path for path in (home / "logs").glob("bad*.log"))
    data = path.read_bytes()
    at = data.index(b'"judged"') + 2
    path.write_bytes(data[:at] + b"X" + data[at + 1 :])

    verified = command(home, "sessions", "verify", "--log", "logs")
    listed = command(home, "sessions", "list", "--log", "logs")
    shown = command(home, "sessions", "show", "bad", "--log", "logs")

    assert (verified.returncode, listed.returncode, shown.returncode) == (8, 0, 8)
    assert verified.stdout.startswith("✓ good: 3 records")
    assert "✗ bad: 1 records" in verified.stdout
    assert "record 2" in verified.stdout
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [["good", "completed"], ["bad", "damaged"]]
    assert "record 2" in shown.stderr
    assert command(home, "sessions", "delete", "--yes", "bad", "--log", "logs").returncode == 0


def test_given_a_session_without_an_intact_record_when_named_then_it_is_found_damaged_and_can_be_deleted(
    home: Path,
) -> None:
    log = FileSessionLog(home / "logs")
    keep(log, "bad", "Fine.")
    path = next(path for path in (home / "logs").glob("bad*.log"))
    data = path.read_bytes()
    at = data.index(b'"started"') + 2
    path.write_bytes(data[:at] + b"X" + data[at + 1 :])

    verified = command(home, "sessions", "verify", "bad", "--log", "logs")
    deleted = command(home, "sessions", "delete", "bad", "--yes", "--log", "logs")
    gone = command(home, "sessions", "verify", "bad", "--log", "logs")

    assert (verified.returncode, deleted.returncode, gone.returncode) == (8, 0, 9)
    assert verified.stdout.startswith("✗ bad: 0 records, 0 bytes; record 0 of session 'bad'")


def test_given_damage_at_the_very_start_when_all_are_verified_or_listed_then_none_is_passed_over(home: Path) -> None:
    log = FileSessionLog(home / "logs")
    for name in ("good", "bad", "headless"):
        keep(log, name, "Fine.")
    bad, headless = (next((home / "logs").glob(f"{name}*.log")) for name in ("bad", "headless"))
    bad.write_bytes(bad.read_bytes().replace(b'"started"', b'"stXrted"'))
    headless.write_bytes(headless.read_bytes().replace(b"deepstrike log", b"deepstrike lug"))

    verified = command(home, "sessions", "verify", "--log", "logs")
    listed = command(home, "sessions", "list", "--log", "logs")
    as_json = command(home, "sessions", "verify", "--log", "logs", "--json")

    assert (verified.returncode, listed.returncode, as_json.returncode) == (8, 0, 8)
    marks = [line.split(":")[0] for line in verified.stdout.splitlines()]
    assert marks == ["✓ good", "✗ bad", f"✗ {headless}"]
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [["good", "completed"], ["bad", "damaged"]]
    assert f"{headless} is not listed: its head is damaged" in listed.stderr
    told = {"session_id": None, "path": str(headless), "sound": False, "trouble": "its head is damaged"}
    assert json.loads(as_json.stdout.splitlines()[-1]) == told


def test_given_a_damaged_session_when_what_is_intact_is_exported_then_it_is_there_and_the_rest_is_told(
    home: Path,
) -> None:
    log = FileSessionLog(home / "logs")
    keep(log, "bad", SUM, "It is 45.")
    records = asyncio.run(log.read("bad"))
    path = next((home / "logs").glob("bad*.log"))
    path.write_bytes(path.read_bytes().replace(b'"ended"', b'"endXd"'))

    refused = command(home, "sessions", "export", "bad", "--log", "logs")
    done = command(home, "sessions", "export", "--intact", "bad", "--log", "logs")
    whole = command(home, "sessions", "export", "--intact", "sums")
    unknown = command(home, "sessions", "export", "--intact", "nope")

    assert (refused.returncode, done.returncode, whole.returncode, unknown.returncode) == (8, 0, 0, 9)
    lines = done.stdout.encode().splitlines()
    assert lines == records[: len(lines)]
    assert 0 < len(lines) < len(records)
    assert done.stderr.startswith(f"left out what is not intact: record {len(records) - 1} of session 'bad'")
    assert (whole.stdout, whole.stderr) == (command(home, "sessions", "export", "sums").stdout, "")


@pytest.mark.parametrize("what", [("list",), ("verify",), ("show", "sums")], ids=" ".join)
def test_given_a_log_that_is_not_there_when_named_then_the_command_says_so_and_makes_nothing(
    home: Path, what: tuple[str, ...]
) -> None:
    typo = command(home, "sessions", *what, "--log", "typo")
    empty = command(home, "sessions", *what, "--log", "")

    assert (typo.returncode, typo.stdout, empty.returncode, empty.stdout) == (9, "", 2, "")
    assert "there is no session log at typo" in typo.stderr
    assert "names no place" in empty.stderr
    assert not (home / "typo").exists()


@pytest.mark.parametrize(("locale", "utf8"), [("C", "0"), ("C", "1"), ("POSIX", "0")])
def test_given_a_locale_without_an_encoding_when_ids_and_goals_are_given_then_they_are_utf_8(
    home: Path, locale: str, utf8: str
) -> None:
    environment = {
        **os.environ,
        "LC_ALL": locale,
        "PYTHONUTF8": utf8,
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]),
        "DEEPSTRIKE_HOME": str(home / "home"),
    }
    words = ("run", "Grüße, 世界", "--session", "Ü-東", "--model", "demo")
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"deepstrike.cli", *(word.encode() for word in words)],
        cwd=home,
        env=environment,
        capture_output=True,
        timeout=60,
    )

    assert done.returncode == 0
    records = asyncio.run(sessions_at(home).read("Ü-東"))
    assert "Grüße, 世界".encode() in records[0]


def test_given_nobody_to_ask_when_deleting_then_yes_must_be_said(home: Path) -> None:
    refused = command(home, "sessions", "delete", "other")
    deleted = command(home, "sessions", "delete", "other", "order", "--yes")

    assert (refused.returncode, deleted.returncode) == (2, 0)
    assert "add --yes" in refused.stderr
    assert asyncio.run(sessions_at(home).sessions()) == ["sums"]


def test_given_no_sessions_when_listed_then_nothing_is_made(tmp_path: Path) -> None:
    done = command(tmp_path, "sessions", "list")

    assert (done.returncode, done.stdout, done.stderr, list(tmp_path.iterdir())) == (0, "", "", [])
