"""`deepstrike evaluate`, as its users see it: real processes with the embedded model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import deepstrike

CASES = [
    {"id": "sum", "goal": "What is 17 + 28?", "contains": "45"},
    {"id": "product", "goal": "What is 6 * 7?", "contains": ["42"]},
    {"id": "wrong", "goal": "What is 1 + 1?", "equals": "three"},
]
TOOLS = ("--tools", "sums:add", "--tools", "sums:multiply")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with cases and tools."""
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    (tmp_path / "sums.py").write_text(
        'def add(x: int, y: int) -> int:\n    """Add."""\n    return x + y\n\n'
        'def multiply(x: int, y: int) -> int:\n    """Multiply."""\n    return x * y\n'
    )
    return tmp_path


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with warnings as errors."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]),
        "DEEPSTRIKE_HOME": str(place / "home"),
    }
    command = [sys.executable, "-W", "error", "-m", "deepstrike.cli", "evaluate", *arguments]
    return subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=60)


def test_given_cases_when_evaluated_then_a_table_says_how_often_the_answers_are_right(place: Path) -> None:
    done = run(place, "cases.jsonl", "--model", "demo", *TOOLS)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["sum", "1/1"], ["product", "1/1"], ["wrong", "0/1"]]
    assert "demo: 66.7% (20.8% to 93.9%) of 3 cases passed" in lines


def test_given_a_rate_that_must_be_reached_when_it_is_not_then_the_exit_code_is_1(place: Path) -> None:
    codes = [
        run(place, "cases.jsonl", "--model", "demo", *TOOLS, "--at-least", rate).returncode for rate in ("0.6", "0.7")
    ]

    assert codes == [0, 1]


def test_given_json_and_a_picture_when_evaluated_against_another_then_programs_can_read_both(place: Path) -> None:
    arguments = ("--model", "demo", "--against", "demo", "--json", "--svg", "plot.svg", "--repeats", "2")

    done = run(place, "cases.jsonl", *TOOLS, *arguments)

    assert done.returncode == 0, done.stderr
    left, right, comparison = map(json.loads, done.stdout.splitlines())
    assert (left["cases"], len(left["trials"]), right["pass_rate"]) == (3, 6, left["pass_rate"])
    assert (comparison["winner"], comparison["p"], comparison["cases"]) == (None, 1.0, 3)
    assert ET.parse(place / "plot.svg").getroot().tag.endswith("svg")


def test_given_a_session_when_evaluated_again_then_nothing_is_run_again(place: Path) -> None:
    arguments = ("cases.jsonl", "--model", "demo", *TOOLS, "--session", "night", "--log", "kept.db", "--json")

    first, again = run(place, *arguments), run(place, *arguments)

    assert json.loads(first.stdout) == json.loads(again.stdout)


def test_given_a_judge_that_is_no_judge_when_evaluated_then_errors_are_counted_apart_and_the_exit_code_is_1(
    place: Path,
) -> None:
    done = run(place, "cases.jsonl", "--model", "demo", *TOOLS, "--judge", "demo")

    assert done.returncode == 1
    assert "not counted, since they ended in an error: 3 trials" in done.stdout


def test_given_a_line_that_is_wrong_when_evaluated_then_the_error_names_it_and_the_exit_code_is_2(place: Path) -> None:
    (place / "cases.jsonl").write_text('{"goal": "a", "equals": "b"}\n{"gaol": "c"}\n')

    done = run(place, "cases.jsonl", "--model", "demo")

    assert done.returncode == 2
    assert done.stderr.startswith("error: cases.jsonl:2: ")
    assert run(place, "none.jsonl", "--model", "demo").returncode == 2


def test_given_a_picture_that_cannot_be_written_when_evaluated_then_that_is_said_before_anything_runs(
    place: Path,
) -> None:
    done = run(place, "cases.jsonl", "--model", "demo", "--svg", "none/plot.svg")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--svg 'none/plot.svg' cannot be written" in done.stderr
