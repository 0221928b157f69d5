"""`deepstrike policy`, as its users see it: real processes on a log that this process has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deepstrike
from deepstrike import Governance, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ScriptedProvider, tool
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.providers.scripted import Reply
from deepstrike.sessions.sqlite import SqliteSessionLog


@tool
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


@tool
def look() -> str:
    """Look around."""
    return "seen"


def keep(log: SqliteSessionLog, session_id: str, governance: Governance | None, *wanted: ToolCall) -> None:
    """A recorded session in which the model makes these calls."""
    replies: list[Reply] = [[*wanted, Finish("tool_calls")], "Done."]
    options = RuntimeOptions(
        provider=ScriptedProvider(replies),
        session_log=log,
        execution_plane=LocalExecutionPlane().register(remove, look),
        governance=governance,
    )
    RuntimeRunner(options).run_sync("go", session_id=session_id)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two sessions: one without a policy, one in which removing was blocked."""
    log = SqliteSessionLog(tmp_path / "kept.db")
    keep(log, "free", None, ToolCall("a", "remove", '{"path": "/tmp/long"}'), ToolCall("b", "remove", '{"path": "/"}'))
    keep(
        log,
        "tied",
        Governance().block_tool("remove"),
        ToolCall("c", "remove", '{"path": "x"}'),
        ToolCall("d", "look", ""),
    )
    return tmp_path


def policy(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with warnings as errors."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]),
        "DEEPSTRIKE_HOME": str(place / "no"),
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "deepstrike.cli", "policy", *arguments],
        cwd=place,
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_given_a_policy_that_decides_otherwise_when_tested_then_each_change_has_its_rule_and_shortest_call(
    place: Path,
) -> None:
    (place / "new.yaml").write_text("block: [remove, 'shell.*']\nrules:\n  - {ask: look, reason: private}\n")
    done = policy(place, "test", "new.yaml", "--sessions", "kept.db")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "4 recorded calls in 2 sessions",
        'newly blocked: 2 by veto, block remove: the tool "remove" is blocked',
        '  for example remove {"path": "/"} (session free, record 3, then allowed)',
        "newly asked about: 1 by permission, ask look: private",
        "  for example look {} (session tied, record 3, then allowed)",
        "dead rule, it fits none of them: block shell.*",
    ]


def test_given_a_policy_that_allows_more_when_tested_as_json_then_it_is_one_object(place: Path) -> None:
    (place / "new.yaml").write_text("default: allow\n")
    done = policy(place, "test", "new.yaml", "--sessions", "kept.db", "--json")
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert (done.returncode, found["calls"], found["sessions"], found["dead"]) == (1, 4, 2, [])
    (change,) = found["changes"]
    assert (change["kind"], change["count"], change["example"]["session_id"]) == ("newly_allowed", 1, "tied")


def test_given_the_policy_of_then_when_tested_then_nothing_changes(place: Path) -> None:
    log = SqliteSessionLog(place / "one.db")
    keep(log, "tied", Governance().block_tool("remove"), ToolCall("c", "remove", '{"path": "x"}'))
    (place / "same.yaml").write_text("block: remove\n")
    done = policy(place, "test", "same.yaml", "--sessions", "one.db")
    assert (done.returncode, done.stdout) == (0, "1 recorded calls in 1 sessions\nnothing changes\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["test", "bad.yaml", "--sessions", "kept.db"], "bad.yaml:1: unknown word 'defualt'; did you mean 'default'?"),
        (["check", "bad.yaml"], "bad.yaml:1: unknown word 'defualt'; did you mean 'default'?"),
        (["check", "nowhere.yaml"], "the policy 'nowhere.yaml' cannot be read"),
        (["test", "good.yaml", "--sessions", "nowhere"], "there are no sessions at 'nowhere'"),
        (["test", "good.yaml"], "there are no sessions at "),
        (["test", "good.yaml", "--sessions", "good.yaml"], "good.yaml"),
    ],
)
def test_given_wrong_files_when_used_then_the_code_is_2_and_the_message_says_where(
    place: Path, arguments: list[str], said: str
) -> None:
    (place / "good.yaml").write_text("default: deny\n")
    (place / "bad.yaml").write_text("defualt: deny\n")
    done = policy(place, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_given_a_right_policy_when_checked_then_it_is_counted(place: Path) -> None:
    (place / "good.yaml").write_text("default: deny\nrules:\n  - allow: [look, 'fs.*']\nblock: rm_rf\n")
    done = policy(place, "check", "good.yaml")
    assert (done.returncode, done.stdout) == (0, "good.yaml: default deny, 2 rules, 1 blocks\n")
    assert json.loads(policy(place, "check", "good.yaml", "--json").stdout)["blocked"] == ["rm_rf"]
