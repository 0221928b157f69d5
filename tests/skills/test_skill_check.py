"""Checking folders of skills against the open format, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from deepstrike.cli.app import cli
from deepstrike.errors import ConfigError
from deepstrike.skills.check import Finding, SkillReport, check

GOOD = """---
name: pdf-forms
description: Fills PDF forms. Use when a form is to be filled.
license: MIT
compatibility: needs pdftk
allowed-tools: Read Bash(pdftk:*)
metadata:
  version: "1.0"
---
Fill it.
"""


def put(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def test_given_a_skill_of_the_open_format_when_checked_then_nothing_is_found(tmp_path: Path) -> None:
    put(tmp_path, "pdf-forms/SKILL.md", GOOD)

    assert check(tmp_path) == SkillReport(("pdf-forms/SKILL.md",), ())
    assert check(tmp_path / "pdf-forms") == SkillReport(("pdf-forms/SKILL.md",), ())


def test_given_a_skill_with_every_fault_when_checked_then_each_has_its_line(tmp_path: Path) -> None:
    text = (
        "---\nname: Pdf--Forms\ndescription: two: parts\nversion: 1\nmetadata: [a]\ncompatibility: ''\n"
        "when_to_use: now\n---\n" + "line\n" * 501
    )
    put(tmp_path, "forms/SKILL.md", text)

    report = check(tmp_path)

    assert not report.good
    assert {(finding.line, finding.level, finding.message) for finding in report.findings} == {
        (3, "error", "is no YAML; it is read as if the text with a colon stood in quotes, put it in quotes"),
        (2, "error", "the name 'Pdf--Forms' must be lowercase letters and digits with single hyphens between them"),
        (2, "error", "the name 'Pdf--Forms' must be that of its folder, 'forms'"),
        (4, "error", "version is no field of the open format; put it under metadata"),
        (5, "error", "metadata must map texts to texts"),
        (6, "error", "compatibility must be a text of 1 to 500 characters"),
        (7, "note", "when_to_use is deepstrike's own; other agents may refuse or ignore it"),
        (1, "note", "has more than 500 lines; move some into files beside it"),
    }


def test_given_flat_broken_and_doubled_files_when_checked_then_each_is_told_of(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "no front matter")
    put(tmp_path, "b.md", f"---\nname: b\ndescription: {'x' * 1025}\n---\n")
    put(tmp_path, "c.md", "---\nname: b\ndescription: d\n---\n")

    assert check(tmp_path).findings == (
        Finding("a.md", 1, "error", "begins with no front matter: its first line must be ---"),
        Finding("b.md", 2, "note", "is a flat file: the open format wants a folder with SKILL.md"),
        Finding("b.md", 3, "error", "the description must have 1 to 1024 characters"),
        Finding("c.md", 2, "error", "has the name of b.md"),
        Finding("c.md", 2, "note", "is a flat file: the open format wants a folder with SKILL.md"),
    )


def test_given_no_folder_when_checked_then_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder"):
        check(tmp_path / "nowhere")


def test_given_the_command_when_run_then_it_prints_findings_and_its_code_tells(tmp_path: Path) -> None:
    put(tmp_path, "good/pdf-forms/SKILL.md", GOOD)
    put(tmp_path, "bad/x.md", "\x1b[31m")
    line = "begins with no front matter: its first line must be ---"

    good = CliRunner().invoke(cli, ["skills", "check", str(tmp_path / "good")])
    bad = CliRunner().invoke(cli, ["skills", "check", str(tmp_path / "bad")])
    plain = CliRunner().invoke(cli, ["skills", "check", "--json", str(tmp_path / "bad")])
    missing = CliRunner().invoke(cli, ["skills", "check", str(tmp_path / "nowhere")])

    assert (good.exit_code, good.output) == (0, "1 skills checked, 0 errors\n")
    assert (bad.exit_code, bad.output) == (1, f"x.md:1: error: {line}\n1 skills checked, 1 errors\n")
    assert json.loads(plain.output) == {"path": "x.md", "line": 1, "level": "error", "message": line}
    assert missing.exit_code == 2


def test_given_a_key_in_a_name_when_checked_then_it_is_masked_in_every_form(tmp_path: Path) -> None:
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
    put(tmp_path, f"{key}.md", "nothing")
    for form in ([], ["--json"]):
        output = CliRunner().invoke(cli, ["skills", "check", *form, str(tmp_path)]).output
        assert (key in output, "***" in output) == (False, True)
