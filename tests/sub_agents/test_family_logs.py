"""The logs of a family of agents: listed, proved, and gone on with from the command line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from families import Cast, delegates, results_of, runner_with

from deepstrike import InMemorySessionLog, SqliteSessionLog
from deepstrike.cli.show import PlainShow
from deepstrike.kernel import decode_record
from deepstrike.replay.proof import replay
from deepstrike.wire.event import Begun


def family() -> Cast:
    """A root with two sub-agents, one of which has one of its own."""
    both = [delegates("one", call_id="a"), delegates("two", "critic", call_id="b")]
    return Cast({"go": [both, "ok"], "one": [[delegates("deep")], "1"], "two": ["2"], "deep": ["3"]})


def deepstrike(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "deepstrike.cli", *arguments]
    environment = {**os.environ, "DEEPSTRIKE_HOME": str(home), "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


async def test_sub_agents_are_listed_below_whose_they_are(tmp_path: Path) -> None:
    log = SqliteSessionLog(tmp_path / "sessions.db")
    await runner_with(Cast({"alone": ["hi"]}), log=log).run("alone", session_id="a")
    await runner_with(family(), log=log).run("go", session_id="s")
    listed = deepstrike("sessions", "list", home=tmp_path)
    assert listed.returncode == 0, listed.stderr
    names = [line.split("  ")[0] for line in listed.stdout.splitlines()]
    assert (names[:2], sorted(names[2:])) == (["a", "s"], ["↳ s/2", "↳ s/2/2", "↳ s/3"])
    assert names[names.index("↳ s/2") + 1] == "↳ s/2/2"


async def test_a_sub_agent_is_not_resumed_from_the_command_line(tmp_path: Path) -> None:
    log = SqliteSessionLog(tmp_path / "sessions.db")
    await runner_with(family(), log=log).run("go", session_id="s")
    refused = deepstrike("resume", "s/3", "--model", "demo", home=tmp_path)
    assert (refused.returncode, "that of a sub-agent of 's'" in refused.stderr) == (2, True)


async def test_every_log_of_a_family_is_proved_the_same() -> None:
    log = InMemorySessionLog()
    await runner_with(family(), log=log, max_total_tokens=50_000, timeout_ms=60_000).run("go", session_id="s")
    for session in await log.sessions():
        assert replay(await log.read(session)).divergence is None


async def test_the_log_says_what_each_was_granted() -> None:
    log = InMemorySessionLog()
    await runner_with(family(), log=log, max_turns=13).run("go", session_id="s")
    events = [decode_record(line).event for line in await log.read("s")]
    assert [event.grant and event.grant.turns for event in events if isinstance(event, Begun)] == [4, 4]


async def test_what_sub_agents_call_is_a_line_each() -> None:
    out, progress = io.StringIO(), io.StringIO()
    with PlainShow(out, progress) as show:
        async for event in runner_with(family()).run_streaming("go"):
            show.event(event)
    assert 'agent-2 → delegate(task="deep")' in progress.getvalue().splitlines()
    assert out.getvalue() == "ok\n"


async def test_the_session_that_another_ones_sub_agent_left_is_not_taken_for_this_task() -> None:
    log = InMemorySessionLog()
    await runner_with(Cast({"go": [[delegates("old")], "ok"], "old": ["old answer"]}), log=log).run(
        "go", session_id="s"
    )
    await log.delete("s")
    cast = Cast({"go": [[delegates("new")], "ok"], "new": ["new answer"]})
    await runner_with(cast, log=log).run("go", session_id="s")
    [told] = results_of(cast.asked("go")[1])
    assert "session 's/2' was begun for another task" in told, told

    for name in ("s", "s/2"):
        await log.delete(name)
    again = Cast({"go": [[delegates("new")], "ok"], "new": ["new answer"]})
    await runner_with(again, log=log).run("go", session_id="s")
    assert results_of(again.asked("go")[1]) == ["new answer"]
