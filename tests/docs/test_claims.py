"""What the pages say of commands, exit codes and files agrees with what there is."""

from __future__ import annotations

import re
from pathlib import Path

from deepstrike.cli import exits

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]


def test_given_the_exit_codes_of_the_readme_when_compared_with_the_commands_then_they_are_the_same() -> None:
    told = README.partition("The exit code\nsays how the run ended: ")[2].partition("\n\n")[0]

    assert set(map(int, re.findall(r"\b\d+\b", told))) == set(map(int, re.findall(r"^ +(\d+)  ", exits.HELP, re.M)))
    for status, code in exits.BY_STATUS.items():
        assert re.search(rf"\b{code} `?{status}\b", told), status


def test_given_the_pages_when_they_name_a_make_target_then_the_makefile_has_it() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    named = {
        (page.name, word)
        for page in PAGES
        for line in re.findall(r"`make ((?:[a-z-]+ ?)+)", page.read_text())
        for word in line.split()
    }

    assert {word for _, word in named} >= {"demo", "test", "torture", "bench", "check"}
    assert sorted((page, word) for page, word in named if word not in targets) == []


def test_given_the_pages_when_they_name_a_figure_of_the_bench_then_it_is_measured() -> None:
    measured = set(re.findall(r'^    Figure\("(\w+)"', (ROOT / "bench" / "figures.py").read_text(), re.MULTILINE))

    named = {
        case for page in PAGES for only in re.findall(r"--only ([\w,]+)", page.read_text()) for case in only.split(",")
    }

    assert named
    assert named <= measured


def test_given_the_decisions_when_they_are_listed_then_each_page_is_there_once_under_its_own_title() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = {page.name: page.read_text() for page in folder.glob("*.md") if page.name != "README.md"}

    listed = re.findall(r"^\* \[(.+)\]\((.+)\)$", (folder / "README.md").read_text(), re.MULTILINE)

    assert sorted(name for _, name in listed) == sorted(pages)
    assert {name: f"# {title}" for title, name in listed} == {
        name: text.partition("\n")[0] for name, text in pages.items()
    }


def test_given_the_architecture_when_it_names_a_file_then_there_is_one() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()

    named = set(re.findall(r"`((?:host|run|providers|sessions|execution)/[\w/]+\.(?:py|rs)|\w+\.py)`", text))
    places = (ROOT / "python" / "deepstrike", ROOT / "crates" / "kernel" / "src")

    assert {"drive.py", "host/crew.py", "host/recent.py", "run/phase.rs"} <= named
    assert sorted(name for name in named if not any((place / name).exists() for place in places)) == []
