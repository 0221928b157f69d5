"""The docs as a site: every page is in it, every public name described, every error explained, nothing fetched."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import deepstrike
from deepstrike import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "docsite"))

import site_map  # noqa: E402  (it is no part of the package)

WRITTEN = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]


def test_given_the_pages_when_they_are_ordered_then_each_stands_there_once_with_a_title() -> None:
    pages = [page for group in site_map.groups().values() for page in group]

    assert sorted(page.path for page in pages) == WRITTEN
    assert [page.path for page in pages if not page.title] == []


def test_given_llms_txt_when_it_is_made_then_it_names_every_page_and_what_it_says() -> None:
    lines = site_map.llms().splitlines()
    named = dict(re.findall(r"^- \[.*\]\(([\w/-]+)\.html\)(.*)$", "\n".join(lines), re.MULTILINE))

    assert lines[:2] == ["# deepstrike", ""]
    assert lines[2].startswith("> deepstrike runs language-model agents from Python: a goal goes in, ")
    written = {path.removesuffix(".md").replace("README", "index") for path in WRITTEN}
    reference = {page.path.removesuffix(".md") for page, _ in site_map.reference()}
    assert set(named) == written | reference
    assert [path for path, says in named.items() if not says] == []


def test_given_the_reference_when_compared_with_the_public_names_then_each_is_described_once() -> None:
    described = [name for _, names in site_map.reference() for name in names]
    last = {name.rpartition(".")[2] for name in described}

    assert set(deepstrike.__all__) - {"__version__"} <= last
    assert {"UnknownSession", "Stalled", "ManualClock", "SkillRegistry", "SqliteDreamStore", "MemoryEntry"} <= last
    assert sorted({name for name in described if described.count(name) > 1}) == []


def test_given_what_the_pages_import_when_looked_up_then_the_reference_describes_it() -> None:
    described = {name.rpartition(".")[2] for _, names in site_map.reference() for name in names}
    text = "\n".join((DOCS / path).read_text() for path in WRITTEN)
    imported = re.findall(r"^from deepstrike[\w.]* import (\([^)]*\)|[\w, ]+)", text, re.M)

    assert len(imported) > 30
    names = {name for each in imported for name in re.findall(r"\w+", each)} - {"secrets"}  # a room, not a name in one
    assert sorted(names - described) == []


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_given_an_error_when_it_is_looked_up_then_the_page_has_its_code_when_and_remedy(
    error: type[errors.DeepStrikeError],
) -> None:
    row = re.search(rf"^\| `{error.__name__}` \| (.+) \| (.+) \| (.+) \|$", (DOCS / "errors.md").read_text(), re.M)

    assert row is not None
    assert row[1] == ("that of what failed" if error is errors.RunFailed else f"`{error.default_code}`")


def test_given_the_errors_page_when_it_names_a_class_then_there_is_one() -> None:
    named = re.findall(r"^\| `(\w+)` \|", (DOCS / "errors.md").read_text(), re.M)

    assert sorted(named) == sorted(each.__name__ for each in CLASSES)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_given_the_docs_when_the_site_is_built_strictly_then_every_page_of_llms_txt_is_there(site: Path) -> None:
    named = re.findall(r"\]\(([\w/-]+\.html)\)", (site / "llms.txt").read_text())

    assert [path for path in named if not (site / path).is_file()] == []
    assert "RuntimeRunner" in (site / "reference" / "agents-and-runs.html").read_text()


def test_given_the_site_when_a_page_is_opened_then_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = [
        f"{page.relative_to(site)}: {found}"
        for page in site.rglob("*.html")
        for found in re.findall(
            r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?((?:https?:)?//[^\"> ]+)", page.read_text()
        )
    ]

    assert fetched == []
