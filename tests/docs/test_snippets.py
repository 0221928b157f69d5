"""What the README, the docs and the examples show works as it is printed. `pages.py` says what surrounds a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "```python" in page.read_text()
]
EVERYDAY = {
    "approval.py": "suspended [('pay', {'euros': 50, 'to': 'Ann'})]\nThe answer is Ann got 50 euros",
    "hello_tool.py": "The answer is 45, by the tool add.\n",
    "judge_loop.py": "True\n2\nAutumn evening\nOn a bare branch a crow\nsettles and is still\n",
    "mcp_server.py": "The answer is 45, by the tool add.\n",
    "resume.py": "The answer is order 4711 is on its way, by the tool ship.\n",
    "streaming.py": "I am the demo model",
    "sub_agent.py": "The answer is The answer is 45, by the tool add., by the tool sums.\n",
    "structured_output.py": "number='A-7' total=12.5\n",
}
EXAMPLES = EVERYDAY | {
    "limits.py": "max_turns after 3 turns\nuser_abort\n",
    "own_model.py": "The clerk says: order 4711 is on its way.\n",
}
CRASHED = "crash"
LINK = r"\]\((?!https?://|#)([^)#]+)"


def python(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, warnings as errors, durable sessions in `cwd`."""
    full = [sys.executable, "-W", "error", *map(str, command)]
    env = {**os.environ, "DEEPSTRIKE_HOME": str(cwd / "home")}
    return subprocess.run(full, capture_output=True, text=True, cwd=cwd, timeout=120, env=env)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_given_a_page_when_its_python_blocks_run_then_they_work_and_give_what_they_promise(
    page: Path, tmp_path: Path
) -> None:
    done = python(Path(__file__).with_name("pages.py"), page, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"\n{page.read_text().count('```python')} blocks ran\n")


def test_given_a_page_that_uses_what_it_does_not_import_when_it_runs_then_it_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nfrom deepstrike import tool\n```\nand\n```python\n(tool, read_file)\n```\n")

    done = python(Path(__file__).with_name("pages.py"), page, cwd=tmp_path)

    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "NameError: name 'read_file' is not defined")


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_given_an_example_when_it_runs_then_it_prints_what_it_is_for(name: str, tmp_path: Path) -> None:
    script = ROOT / "examples" / name
    if "mcp(" in script.read_text():
        pytest.importorskip("mcp")
    if CRASHED in script.read_text():
        assert python(script, CRASHED, cwd=tmp_path).returncode == 1

    done = python(script, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert EXAMPLES[name] in done.stdout


def test_given_the_examples_when_they_are_listed_then_each_one_is_run_here() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


def test_given_the_everyday_tasks_when_their_lines_of_code_are_counted_then_there_are_at_most_49() -> None:
    texts = [(ROOT / "examples" / name).read_text() for name in EVERYDAY]

    code = [line for text in texts for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]

    assert len(code) <= 49


def test_given_the_pages_when_their_links_are_followed_then_each_leads_to_a_file() -> None:

    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)} → {target}"
        for page in pages
        for target in re.findall(LINK, page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_given_the_quick_start_when_it_is_compared_with_what_was_asked_for_then_it_is_word_for_word() -> None:
    asked = ROOT.parent / "shared" / "spec" / "package-description.txt"
    if not asked.exists():
        pytest.skip("the description is not beside this checkout")
    text = asked.read_text()
    start = text.index("import asyncio\nfrom deepstrike import (")
    quick_start = text[start : text.index('# => "45"')].strip()
    streaming = text[text.index("async for event in runner.run_streaming") : text.index("\n---\n\nProviders")].strip()

    readme = (ROOT / "README.md").read_text()

    assert quick_start in readme
    assert streaming in readme
