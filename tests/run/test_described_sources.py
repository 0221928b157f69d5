"""The description's snippets on skills, knowledge and memory, as they are printed, with the names around them given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doubles import Script, call, calls, result_texts, say

from deepstrike import InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner

CONTRACT = Path(__file__).parents[2] / "../shared/spec/package-description.txt"

SKILLS = """
runner = RuntimeRunner(RuntimeOptions(
    provider=provider,
    session_log=InMemorySessionLog(),
    execution_plane=plane,
    max_tokens=4096,
    max_turns=25,
    skill_dir="./skills",
))
"""

SKILL = """
---
name: summarize
description: Summarize text into 2-3 concise bullet points
when_to_use: When you need to condense long text
effort: 1
---
1. Identify the 2-3 most important points
2. Express each as a concise bullet
"""

KNOWLEDGE = """
from deepstrike import KnowledgeSource

class VectorSearch(KnowledgeSource):
    async def init(self) -> None:
        await vector_db.connect()

    async def retrieve(self, query: str, top_k: int = 5) -> list[str]:
        return await vector_db.search(query, top_k)

runner = RuntimeRunner(RuntimeOptions(
    provider=provider,
    session_log=InMemorySessionLog(),
    execution_plane=plane,
    max_tokens=4096,
    max_turns=25,
    knowledge_source=VectorSearch(),
))
"""

WORKING = """
from deepstrike import WorkingMemory

mem = WorkingMemory()
mem.set("step", 1)
mem.get("step")  # 1
mem.clear()
"""

STORE = """
from deepstrike import DreamStore

class MyStore(DreamStore):
    async def load_sessions(self, agent_id): ...
    async def load_memories(self, agent_id): ...
    async def commit(self, agent_id, result, existing): ...
    async def search(self, agent_id, query, top_k): ...
    async def save_session(self, data): ...

runner = RuntimeRunner(RuntimeOptions(
    provider=provider,
    session_log=InMemorySessionLog(),
    execution_plane=plane,
    max_tokens=4096,
    max_turns=25,
    dream_store=MyStore(),
    agent_id="my-agent",
))
"""


class VectorDb:
    """What the description takes for granted."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    async def connect(self) -> None:
        self.calls.append("connect")

    async def search(self, query: str, top_k: int) -> list[str]:
        self.calls.append((query, top_k))
        return ["a passage"]


def runner_of_snippet(source: str, model: Script, **around: object) -> RuntimeRunner:
    """The `runner` that a snippet makes."""
    names: dict[str, object] = {
        "RuntimeRunner": RuntimeRunner,
        "RuntimeOptions": RuntimeOptions,
        "InMemorySessionLog": InMemorySessionLog,
        "plane": LocalExecutionPlane(),
        "provider": model,
        **around,
    }
    exec(compile(source, "<snippet>", "exec"), names)
    runner = names["runner"]
    assert isinstance(runner, RuntimeRunner)
    return runner


async def test_the_skill_is_offered_and_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "summarize.md").write_text(SKILL.lstrip())
    model = Script(calls(call("skill", '{"name":"summarize"}')), say("- short"))

    assert (await runner_of_snippet(SKILLS, model).run("Summarize it.")).text == "- short"

    line = "- summarize: Summarize text into 2-3 concise bullet points (use when: When you need to condense long text; "
    assert model.requests[0].system_knowledge.endswith(f"\n{line}effort: 1)")
    body = "1. Identify the 2-3 most important points\n2. Express each as a concise bullet"
    assert result_texts(model.turns[1]) == [body]


async def test_the_knowledge_source_is_connected_once_and_its_passages_are_tool_results() -> None:
    database = VectorDb()
    model = Script(calls(call("knowledge", '{"query":"q"}')), calls(call("knowledge", '{"query":"r"}')), say("ok"))

    await runner_of_snippet(KNOWLEDGE, model, vector_db=database).run("go")

    assert database.calls == ["connect", ("q", 5), ("r", 5)]
    assert result_texts(model.turns[2]) == ["[1] a passage", "[1] a passage"]


def test_the_scratch_pad_keeps_what_is_set_until_it_is_cleared() -> None:
    names: dict[str, object] = {}
    exec(compile(WORKING.replace('mem.get("step")  # 1', 'seen = mem.get("step")'), "<snippet>", "exec"), names)
    assert (names["seen"], dict(names["mem"])) == (1, {})  # type: ignore[call-overload]  # it is a mapping


async def test_a_store_that_does_nothing_yet_is_an_error_for_the_model_and_no_end_of_the_run() -> None:
    model = Script(calls(call("memory", '{"query":"q"}')), say("ok"))

    assert (await runner_of_snippet(STORE, model).run("go")).text == "ok"

    assert result_texts(model.turns[1])[0].startswith("the memory cannot be searched: TypeError: search gave NoneType")


@pytest.mark.skipif(not CONTRACT.exists(), reason="the description is not beside this checkout")
@pytest.mark.parametrize("snippet", [SKILLS, SKILL, KNOWLEDGE, WORKING, STORE])
def test_the_snippets_are_the_descriptions_own(snippet: str) -> None:
    assert re.sub(r"\s+", " ", snippet) in re.sub(r"\s+", " ", CONTRACT.read_text())
