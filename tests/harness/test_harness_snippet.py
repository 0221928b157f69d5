"""What the description prints of harnesses, as it is printed, with the names that it leaves out defined around it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest
from judged import runner_of, script, verdict

SNIPPET = """
from deepstrike import SinglePassHarness, EvalLoopHarness, HarnessLoop, HarnessRequest

# 1. SinglePass — run once, always passes
outcome = await SinglePassHarness(runner).run(HarnessRequest(goal="Say hello"))

# 2. EvalLoop — retry until QualityGate passes
class ContainsHello(QualityGate):
    async def evaluate(self, request, outcome) -> bool:
        return "hello" in outcome.result.lower()

outcome = await EvalLoopHarness(runner, gate=ContainsHello(), max_attempts=3).run(req)

# 3. HarnessLoop — LLM-as-judge with feedback injection + skill extraction
loop = HarnessLoop(runner, eval_provider=eval_provider, max_attempts=3, skill_dir="./skills")
"""
LISTENING = """
async for event in loop.run_streaming(HarnessRequest(goal="Write a haiku")):
    if event.type == "done":
        print(event.verdict.passed, event.verdict.feedback)
"""
CONTRACT = Path(__file__).parents[2] / "../shared/spec/package-description.txt"


def run(source: str, **names: object) -> dict[str, object]:
    """Run a snippet that awaits; the names that it leaves behind."""
    code = compile(source, "<snippet>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(code, names)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(value)
    return names


def test_given_the_descriptions_snippet_when_run_then_each_harness_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from deepstrike import HarnessOutcome, HarnessRequest, QualityGate

    monkeypatch.chdir(tmp_path)
    model = script("Good day.", "Good day.", "Hello!", "Old pond.", "Old pond, frog.")
    judge = script(verdict(False, "no frog"), verdict(True, "a frog"))

    names = run(
        SNIPPET + LISTENING,
        runner=runner_of(model),
        req=HarnessRequest(goal="Say hello"),
        eval_provider=judge,
        QualityGate=QualityGate,
    )

    outcome = names["outcome"]
    assert isinstance(outcome, HarnessOutcome)
    assert (outcome.result, outcome.passed, outcome.attempts) == ("Hello!", True, 2)
    assert capsys.readouterr().out == "True a frog\n"
    assert (len(model.requests), len(judge.requests)) == (5, 2)


@pytest.mark.skipif(not CONTRACT.exists(), reason="the description is not beside this checkout")
def test_given_the_snippet_when_compared_with_the_description_then_it_is_word_for_word() -> None:
    text = CONTRACT.read_text()

    assert SNIPPET.strip() in text
    assert LISTENING.strip() in text
    assert re.search(r"^Harness \(evaluation framework\)$", text, re.M)
