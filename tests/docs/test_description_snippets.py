"""Every snippet of the description runs, as printed where it is beside this checkout, and in a copy of our own."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from pages import AWAITS, evaluate
from promised import SKILL, SNIPPETS, Snippet, lines_of_code, runnable

import deepstrike
from deepstrike import Governance, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ScriptedProvider
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.skills import SkillRegistry
from deepstrike.testing import ModelServer
from deepstrike.wire.message import Usage

DESCRIPTION = Path(__file__).parents[2] / "../shared/spec/package-description.txt"
VERDICT = '{"passed": true, "overall_score": 1.0, "feedback": "fine", "criteria": []}'


class Database:
    """A store of vectors, as far as the description uses one."""

    async def connect(self) -> None:
        """Do nothing."""

    async def search(self, query: str, top_k: int) -> list[str]:
        """Find nothing."""
        return []


async def my_fn(query: str) -> str:
    """The function behind the description's own schema."""
    return query


def surrounding(needs: tuple[str, ...]) -> dict[str, object]:
    """The names that snippets use without defining them."""
    provider = ScriptedProvider(["hello"], repeat_last=True)
    names: dict[str, object] = {name: getattr(deepstrike, name) for name in deepstrike.__all__}
    names |= {
        "provider": provider,
        "eval_provider": ScriptedProvider([VERDICT], repeat_last=True),
        "plane": LocalExecutionPlane(),
        "gov": Governance(),
        "schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        "my_fn": my_fn,
        "vector_db": Database(),
        "target_time": int(time.time() * 1000) + 3_600_000,
        "time": time,
        "runner": RuntimeRunner(RuntimeOptions(provider=provider)),
    }
    if {"KnowledgeSource", "DreamStore", "SignalGateway"} <= set(needs):
        from deepstrike.knowledge import FolderKnowledge
        from deepstrike.memory import InMemoryDreamStore

        names |= {"my_ks": FolderKnowledge("."), "my_store": InMemoryDreamStore()}
        names["gateway"] = names["SignalGateway"]()  # type: ignore[operator]
    if "HarnessRequest" in needs:
        names["req"] = names["HarnessRequest"](goal="Say hello")  # type: ignore[operator]
    return names


def run(source: str, needs: tuple[str, ...]) -> dict[str, object]:
    """Run a snippet; what it left, and under `_` the value of its last line if that is an expression."""
    names = surrounding(needs)
    tree = ast.parse(runnable(source))
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
    code = compile(ast.fix_missing_locations(tree), "<description>", "exec", AWAITS, dont_inherit=True)
    evaluate(code, names)
    return names


def checked(snippet: Snippet, source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run it in a folder of its own, with a chat server on loopback for OpenAI; then see what must hold."""
    (tmp_path / "skills").mkdir()
    monkeypatch.chdir(tmp_path)
    adds: list[ModelEvent] = [ToolCall("call_1", "add", '{"x": 17, "y": 28}'), Usage(60, 20), Finish("tool_calls")]
    with ModelServer([adds, [deepstrike.TextDelta("45"), Usage(90, 2), Finish("stop")]]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        names = run(source, snippet.needs)
    assert snippet.holds(names)


@pytest.mark.parametrize("name", SNIPPETS)
def test_given_our_copy_of_a_snippet_when_it_runs_then_it_gives_what_it_promises(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checked(SNIPPETS[name], SNIPPETS[name].copy, monkeypatch, tmp_path)


@pytest.mark.skipif(not DESCRIPTION.exists(), reason="the description is not beside this checkout")
@pytest.mark.parametrize("name", SNIPPETS)
def test_given_a_snippet_of_the_description_when_it_runs_as_printed_then_it_gives_what_it_promises(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checked(SNIPPETS[name], SNIPPETS[name].printed(DESCRIPTION.read_text()), monkeypatch, tmp_path)


@pytest.mark.skipif(not DESCRIPTION.exists(), reason="the description is not beside this checkout")
def test_given_the_description_when_its_lines_of_code_are_looked_up_then_each_is_in_a_snippet() -> None:
    text = DESCRIPTION.read_text()
    run_here = {line for snippet in SNIPPETS.values() for line in snippet.printed(text).splitlines()}

    assert lines_of_code(text) - run_here == set()


def printed_and_copied() -> list[str]:
    return [SKILL.copy, *([SKILL.printed(DESCRIPTION.read_text())] if DESCRIPTION.exists() else [])]


@pytest.mark.parametrize("text", printed_and_copied())
def test_given_the_descriptions_skill_when_it_is_scanned_then_it_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "summarize.md").write_text(text)

    [skill] = SkillRegistry(tmp_path).scan()

    assert (skill.name, skill.effort) == ("summarize", 1)
    assert skill.when_to_use
    assert skill.when_to_use.startswith("When ")
