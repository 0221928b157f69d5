"""`deepstrike policy`, as its users see it: real processes on a log that this process has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deepstrike
from deepstrike import Approve, Governance, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ScriptedProvider, tool
from deepstrike.cli import exits
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
    assert (done.returncode, done.stdout) == (0, "good.yaml: default deny, 2 rules, 1 block\n")
    assert json.loads(policy(place, "check", "good.yaml", "--json").stdout)["blocked"] == ["rm_rf"]


def test_given_no_sessions_when_a_policy_is_tested_then_nothing_passes_for_a_success(place: Path) -> None:
    (place / "new.yaml").write_text("default: deny\n")
    (place / "empty").mkdir()
    done = policy(place, "test", "new.yaml", "--sessions", "empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there are no sessions at 'empty', so nothing was tested" in done.stderr


def test_given_a_rule_that_a_stronger_one_covers_when_tested_then_it_is_named(place: Path) -> None:
    (place / "new.yaml").write_text(
        "rules:\n  - allow: [remove, look]\n  - deny: 'rem*'\npermissions:\n  mode: auto\n"
        "  grant: [{tool: fs, action: read}]\n  revoke: [{tool: look, action: call}]\n"
    )
    done = policy(place, "test", "new.yaml", "--sessions", "kept.db")
    assert done.stdout.splitlines()[-2:] == [
        "dead rule, it fits none of them: grant fs.read",
        "overruled rule, a stronger one fits all that it fits: allow remove",
    ]


def test_given_a_rule_and_a_block_of_the_same_tools_when_tested_then_that_is_named_which_never_decides(
    place: Path,
) -> None:
    (place / "new.yaml").write_text("rules:\n  - deny: remove\n  - allow: look\nblock: [remove, 'l*k']\n")
    done = policy(place, "test", "new.yaml", "--sessions", "kept.db")
    assert done.stdout.splitlines()[-2:] == [
        "overruled rule, a stronger one fits all that it fits: allow look",
        "overruled rule, a stronger one fits all that it fits: block remove",
    ]


def test_given_approved_calls_when_tested_by_the_policy_that_asked_then_nothing_changes(tmp_path: Path) -> None:
    log = SqliteSessionLog(tmp_path / "kept.db")
    text = "rules:\n  - ask: remove\nrate_limits:\n  - {tool: remove, max_calls: 1, window_ms: 60000}\n"
    (tmp_path / "same.yaml").write_text(text)
    (tmp_path / "strict.yaml").write_text(
        text + "constraints:\n  - tool: remove\n    schema: {properties: {path: {not: {pattern: ^/etc}}}}\n"
    )
    options = RuntimeOptions(
        provider=ScriptedProvider(
            [
                [ToolCall("a", "remove", '{"path": "a"}'), Finish("tool_calls")],
                [ToolCall("b", "remove", '{"path": "b"}'), Finish("tool_calls")],
                "Done.",
            ]
        ),
        session_log=log,
        execution_plane=LocalExecutionPlane().register(remove, look),
        governance=Governance.from_file(tmp_path / "same.yaml"),
        on_permission_request=lambda _: Approve({"path": "/etc"}),
    )
    RuntimeRunner(options).run_sync("go", session_id="asked")

    assert policy(tmp_path, "test", "same.yaml", "--sessions", "kept.db").stdout.splitlines() == [
        "2 recorded calls in 1 sessions",
        "nothing changes",
    ]
    assert policy(tmp_path, "test", "strict.yaml", "--sessions", "kept.db").stdout.splitlines()[1:] == [
        'newly blocked: 1 by constraint, constraint remove {"properties":{"path":{"not":{"pattern":"^/etc"}}}}: the '
        'arguments are not allowed: /path: {"pattern":"^/etc"} is not allowed for "/etc"',
        '  for example remove {"path":"/etc"} (session asked, record 4, then allowed)',
        'newly asked about: 1 by permission, ask remove: a person has to allow "remove"',
        '  for example remove {"path": "b"} (session asked, record 8, then over a rate limit)',
    ]


def cli(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Any command, with the demo model and the tools of this place."""
    variables = {**os.environ, "PYTHONPATH": f"{Path(deepstrike.__file__).parents[1]}:{place}"}
    command = [sys.executable, "-m", "deepstrike.cli", *arguments]
    return subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=60)


def test_given_a_session_begun_under_a_policy_when_resumed_without_one_then_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "ask.yaml").write_text("default: ask\n")
    (tmp_path / "block.yaml").write_text("default: ask\nblock: [add]\n")
    (tmp_path / "mytools.py").write_text("def add(x: int, y: int) -> int:\n    return x + y\n")
    common = ("--model", "demo", "--tools", "mytools:add", "--log", "kept.db")
    begun = cli(tmp_path, "run", "What is 17 + 28?", "--session", "s", "--policy", "ask.yaml", *common)
    assert begun.returncode == exits.BY_STATUS["suspended"], begun.stderr
    assert "--policy ask.yaml" in begun.stderr
    before = (tmp_path / "kept.db").read_bytes()

    refused = cli(tmp_path, "resume", "s", "--answer", "2=true", *common)
    assert (refused.returncode, "no --policy is given; nothing was recorded" in refused.stderr) == (2, True)
    assert (tmp_path / "kept.db").read_bytes() == before

    blocked = cli(tmp_path, "resume", "s", "--answer", "2=true", "--policy", "block.yaml", "--json", *common)
    kinds = [json.loads(line) for line in blocked.stdout.splitlines()]
    assert kinds, blocked.stderr
    assert [event["stage"] for event in kinds if event["type"] == "tool_denied"] == ["veto"]
