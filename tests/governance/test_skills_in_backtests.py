"""Recorded calls that are judged again: under the skill that was active, and the run's own tools as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepstrike import (
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
)
from deepstrike.governance.backtest import Change, JudgedCall, backtest, judged_calls
from deepstrike.governance.verdict import GovernanceVerdict
from deepstrike.kernel import Corrupt
from deepstrike.providers.base import Finish, ToolCall


def look() -> str:
    """Look."""
    return "seen"


def write() -> str:
    """Write."""
    return "written"


@pytest.fixture
async def records(tmp_path: Path) -> list[bytes]:
    """A session in which a skill let `look` pass and denied `write`."""
    (tmp_path / "reader.md").write_text("---\nname: reader\ndescription: reads\nallowed_tools: look\n---\nRead.\n")
    log = InMemorySessionLog()
    model = ScriptedProvider(
        [
            [ToolCall("a", "write", "{}"), ToolCall("b", "skill", '{"name":"reader"}'), Finish("tool_calls")],
            [ToolCall("c", "write", "{}"), ToolCall("d", "look", "{}"), Finish("tool_calls")],
            "Done.",
        ]
    )
    options = RuntimeOptions(
        provider=model,
        session_log=log,
        execution_plane=LocalExecutionPlane().register(look, write),
        skill_dir=tmp_path,
    )
    await RuntimeRunner(options).run("go", session_id="s")
    return await log.read("s")


async def test_given_recorded_calls_when_read_then_each_has_the_skill_that_was_active(records: list[bytes]) -> None:
    told = [(call.tool, call.was, call.skill, call.allowed_tools) for call in judged_calls("s", records)]
    assert told == [
        ("write", "allow", "", ()),
        ("skill", "allow", "", ()),
        ("write", "deny", "reader", ("look",)),
        ("look", "allow", "reader", ("look",)),
    ]


async def test_given_a_policy_that_allows_all_when_tested_then_what_a_skill_denied_stays_denied(
    records: list[bytes],
) -> None:
    assert backtest(Governance(), {"s": records}).changes == ()


async def test_given_a_policy_that_denies_by_default_when_tested_then_the_runs_own_tools_stay_allowed(
    records: list[bytes],
) -> None:
    found = backtest(Governance("deny"), {"s": records})

    shown = [(change.kind, change.count, change.example.tool, change.verdict.rule) for change in found.changes]
    assert shown == [("newly_blocked", 2, "write", "default")]
    assert isinstance(found.changes[0], Change)
    assert isinstance(found.changes[0].example, JudgedCall)
    assert isinstance(found.changes[0].verdict, GovernanceVerdict)


async def test_given_a_log_with_skills_that_does_not_fold_when_tested_then_it_is_told(records: list[bytes]) -> None:
    with pytest.raises(Corrupt):
        backtest(Governance(), {"s": [records[0], records[2]]})
