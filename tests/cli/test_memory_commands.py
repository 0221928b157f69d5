"""`deepstrike memory`, as its users see it: real processes on a store that this process has filled."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import deepstrike
from deepstrike import RuntimeOptions, RuntimeRunner, ScriptedProvider
from deepstrike.memory import SessionData, SqliteDreamStore

DAY = 86_400_000
AT = 1_700_000_000_000  # 2023-11-14
NASTY = "\x1b[31mred\x1b]0;title\x07 \u202eevil"


def dreamed(path: Path, agent: str, *sessions: tuple[str, str, str]) -> None:
    """One dream for each of these: a session, what the user says in it, and what the model draws from it."""
    store = SqliteDreamStore(path)
    for day, (session_id, said, insight) in enumerate(sessions):
        data = SessionData(session_id, agent, [{"role": "user", "content": said}], {}, AT + day * DAY, AT + day * DAY)
        answer = json.dumps({"insights": [{"text": insight, "confidence": 0.9}]})
        options = RuntimeOptions(provider=ScriptedProvider([answer]), dream_store=store, agent_id=agent)

        async def dream(data: SessionData = data, options: RuntimeOptions = options, now: int = AT + day * DAY) -> None:
            await store.save_session(data)
            await RuntimeRunner(options).dream(agent, now_ms=now)

        asyncio.run(dream())
    store.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The default store with two dreams, the second of which corrects the first."""
    path = tmp_path / "memories.db"
    dreamed(
        path,
        "ann",
        ("first", "I live in Berlin", "User lives in Berlin"),
        ("second", "I moved to Rome", "User lives in Rome"),
    )
    return tmp_path


def memory(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a pipe; a warning of Python's would be an error."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]),
        "DEEPSTRIKE_HOME": str(home),
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "deepstrike.cli", "memory", *arguments],
        cwd=home,
        env=environment,
        input="",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def names(text: str) -> str:
    """Names of entries as NAME."""
    return re.sub(r"\b[0-9a-f]{8}\b", "NAME", text)


def test_given_memories_when_listed_then_what_is_so_is_shown_with_its_source(home: Path) -> None:
    so, everything, as_json = (memory(home, "list", *more) for more in ((), ("--all",), ("--json",)))

    assert (so.returncode, so.stderr, names(so.stdout)) == (
        0,
        "",
        "NAME  2023-11-15  User lives in Rome  [session second]\n",
    )
    assert names(everything.stdout).splitlines()[1:] == [
        "NAME  2023-11-14  User lives in Berlin (until 2023-11-15)  [session first]"
    ]
    [line] = as_json.stdout.splitlines()
    told = json.loads(line)
    assert (told["agent"], told["text"], told["current"], told["metadata"]["session_id"]) == (
        "ann",
        "User lives in Rome",
        True,
        "second",
    )


def test_given_an_entry_when_shown_then_its_source_and_what_it_replaced_are_there(home: Path) -> None:
    name = memory(home, "list").stdout.split()[0]

    done = memory(home, "show", name[:6])

    assert (done.returncode, names(done.stdout)) == (
        0,
        "NAME  User lives in Rome\n"
        "  since       2023-11-15\n"
        "  confidence  0.9\n"
        "  from        session second, turn 0\n"
        "  where       I moved to Rome\n"
        "  instead of  User lives in Berlin (until 2023-11-15)\n",
    )
    assert json.loads(memory(home, "show", name, "--json").stdout)["entry"] == name
    assert [memory(home, "show", wrong).returncode for wrong in ("nope", "", "ab")] == [9, 9, 9]


def test_given_dreams_when_compared_then_the_last_ones_changes_are_shown(home: Path) -> None:
    last, every, as_json = (memory(home, "diff", *more) for more in ((), ("--all",), ("--json",)))

    assert last.stdout == (
        "dream 2 · 2023-11-15\n+ User lives in Rome  [session second]\n- User lives in Berlin (until 2023-11-15)\n"
    )
    assert every.stdout == last.stdout + "dream 1 · 2023-11-14\n+ User lives in Berlin  [session first]\n"
    told = json.loads(as_json.stdout)
    assert [entry["text"] for entry in told["added"]] == ["User lives in Rome"]


def test_given_a_dream_when_undone_then_what_was_before_is_so_again(home: Path) -> None:
    done = memory(home, "undo")

    assert (done.returncode, done.stdout.splitlines()[0], "+ User lives in Rome" in done.stdout) == (
        0,
        "taken back:",
        True,
    )
    assert "User lives in Berlin  [session first]" in memory(home, "list", "--all").stdout
    assert "Rome" not in memory(home, "list", "--all").stdout
    assert json.loads(memory(home, "undo", "--json").stdout)["dream"] == 1
    nothing = memory(home, "undo")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "there is no dream to take back\n")


def test_given_a_session_when_forgotten_then_all_of_it_is_gone(home: Path) -> None:
    unasked = memory(home, "forget", "second")
    done = memory(home, "forget", "second", "--yes")

    assert (unasked.returncode, "add --yes" in unasked.stderr) == (2, True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert b"Rome" not in (home / "memories.db").read_bytes()
    assert "User lives in Berlin  [session first]" in memory(home, "list").stdout
    again = memory(home, "forget", "second", "--yes")
    assert (again.returncode, "nothing is known of 'second'" in again.stderr) == (9, True)


def test_given_several_agents_when_none_is_named_then_each_is_told_apart_or_one_must_be(home: Path) -> None:
    dreamed(home / "memories.db", "bo", ("third", "I like tea", "User likes tea"))

    assert [line.split()[0] for line in memory(home, "list").stdout.splitlines()] == ["ann", "bo"]
    assert "User likes tea" in memory(home, "diff", "--agent", "bo").stdout
    unclear, unknown = memory(home, "undo"), memory(home, "undo", "--agent", "nobody")
    assert (unclear.returncode, "--agent: 'ann', 'bo'" in unclear.stderr) == (2, True)
    assert (unknown.returncode, "no agent 'nobody'" in unknown.stderr) == (9, True)


def test_given_no_store_when_asked_then_the_default_is_empty_and_a_named_one_is_missed(tmp_path: Path) -> None:
    assert (memory(tmp_path, "list").returncode, memory(tmp_path, "list").stdout) == (0, "")
    assert memory(tmp_path, "diff").stderr == "no dream has changed anything yet\n"
    missing = memory(tmp_path, "list", "--store", "nowhere.db")
    (tmp_path / "text.db").write_text("no database " * 100)
    damaged = memory(tmp_path, "list", "--store", "text.db")

    assert (missing.returncode, "no store of memories at nowhere.db" in missing.stderr) == (9, True)
    assert (damaged.returncode, damaged.stderr.count("\n")) == (1, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.db"]


def test_given_hostile_text_and_a_key_when_shown_then_nothing_is_obeyed_or_told(tmp_path: Path) -> None:
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
    dreamed(tmp_path / "mine.db", f"a{NASTY}", ("s", f"{NASTY} {key}", f"{NASTY} key {key}"))
    where = ("--store", "mine.db")
    name = json.loads(memory(tmp_path, "list", "--json", *where).stdout)["entry"]

    for words in (("list",), ("list", "--json"), ("show", name), ("diff",), ("undo",)):
        done = memory(tmp_path, *words, *where)
        assert (done.returncode, re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)) == (0, [])
        assert key not in done.stdout
        assert "red" in done.stdout
