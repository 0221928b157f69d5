"""What a skill narrows reaches the sub-agents that are put to work under it."""

from __future__ import annotations

from pathlib import Path

from families import Cast, config_of, delegates

from deepstrike import InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.memory.in_memory import InMemoryDreamStore
from deepstrike.providers.base import ToolCall

SKILL = """---
name: sums
description: Add numbers
allowed_tools: [add, delegate]
---
Add.
"""


@tool
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


@tool
async def look() -> str:
    """Look."""
    return "seen"


def runner_with(model: Cast, folder: Path, log: InMemorySessionLog, store: InMemoryDreamStore) -> RuntimeRunner:
    """A runner with a skill and a memory, whose model may delegate."""
    (folder / "sums.md").write_text(SKILL)
    return RuntimeRunner(
        RuntimeOptions(
            provider=model,
            session_log=log,
            execution_plane=LocalExecutionPlane().register(add, look),
            skill_dir=str(folder),
            dream_store=store,
            agent_id="root",
            sub_agents=True,
        )
    )


async def test_a_sub_agent_gets_what_the_active_skill_leaves_its_parent(tmp_path: Path) -> None:
    log, store = InMemorySessionLog(), InMemoryDreamStore()
    model = Cast(
        {
            "go": [
                [delegates("before", call_id="a")],
                [ToolCall("s", "skill", '{"name":"sums"}')],
                [delegates("after")],
                "ok",
            ],
            "before": ["1"],
            "after": ["2"],
        }
    )
    result = await runner_with(model, tmp_path, log, store).run("go", session_id="s")
    assert result.status == "completed"
    children = sorted((await log.sessions()), key=len)[1:]
    tools = [
        [spec.name for spec in (await config_of(log, session)).tools]
        for session in sorted(children, key=lambda each: int(each.split("/")[1]))
    ]
    assert tools == [["add", "look"], ["add"]]


async def test_only_what_the_user_said_is_remembered(tmp_path: Path) -> None:
    log, store = InMemorySessionLog(), InMemoryDreamStore()
    model = Cast({"go": [[delegates("secretly")], "ok"], "secretly": ["done"]})
    await runner_with(model, tmp_path, log, store).run("go", session_id="s")
    assert [session.session_id for session in await store.load_sessions("root")] == ["s"]
