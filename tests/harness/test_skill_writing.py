"""Skills that a judge proposes: written below the folder, valid, over nothing; or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from judged import runner_of, script, verdict

from deepstrike.harness import HarnessLoop, HarnessOutcome, HarnessRequest
from deepstrike.skills.check import check
from deepstrike.skills.registry import SkillRegistry
from deepstrike.stream import NoticeEvent

GOAL = HarnessRequest("Write a haiku")
GOOD = {"name": "write-haiku", "description": "x: y", "body": "1. Count.\n2. Write.", "when_to_use": "for # haiku"}


async def learned(folder: Path, skill: object, *, passed: bool = True) -> HarnessOutcome:
    """The outcome of one attempt whose judge proposes `skill`."""
    judge = script(verdict(passed, "ok", skill=skill))
    return await HarnessLoop(runner_of(script("one")), judge, max_attempts=1, skill_dir=folder).run(GOAL)


def tree(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


async def test_given_an_attempt_that_passed_when_a_skill_is_proposed_then_it_is_written_and_can_be_loaded(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "skills"

    outcome = await learned(folder, GOOD)

    assert outcome.skill == folder / "write-haiku" / "SKILL.md"
    assert tree(folder) == ["write-haiku", "write-haiku/SKILL.md"]
    skill = SkillRegistry(folder).load("write-haiku")
    assert (skill.metadata.description, skill.metadata.when_to_use) == ("x: y", "for # haiku")
    assert skill.body == "1. Count.\n2. Write."
    assert check(folder).good


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("../../evil", "evil"),
        ("a/b", "a-b"),
        ("n" * 300, "n" * 64),
        ("C:\\Windows\\x", "c-windows-x"),
        ("/etc/passwd", "etc-passwd"),
        ("Write Haiku!", "write-haiku"),
        ("..\0..", None),
        ("con", None),
        ("COM1", None),
        ("", None),
        ("...", None),
        ("-", None),
        ("é\u202eX", "é-x"),
    ],
)
async def test_given_any_name_when_a_skill_is_proposed_then_it_stays_in_the_folder_or_is_not_written(
    name: str, cleaned: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "skills"
    folder.mkdir()

    outcome = await learned(folder, {**GOOD, "name": name})

    assert outcome.passed
    assert tree(folder) == ([] if cleaned is None else [cleaned, f"{cleaned}/SKILL.md"])
    assert [path.name for path in tmp_path.iterdir()] == ["skills"]
    if cleaned is not None:
        assert SkillRegistry(folder).load(cleaned).metadata.description == "x: y"


@pytest.mark.parametrize("taken", ["write-haiku.md", "Write-Haiku/SKILL.md", "other/SKILL.md", "write-haiku/notes.txt"])
async def test_given_something_of_that_name_when_a_skill_is_proposed_then_nothing_changes(
    taken: str, tmp_path: Path
) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("---\nname: write-haiku\ndescription: mine\n---\nmine\n")
    before = tree(tmp_path)

    outcome = await learned(tmp_path, GOOD)

    assert (outcome.passed, outcome.skill) == (True, None)
    assert tree(tmp_path) == before
    assert (tmp_path / taken).read_text().endswith("mine\n")


@pytest.mark.parametrize(
    "skill",
    [
        None,
        "a skill",
        {},
        {**GOOD, "body": ""},
        {**GOOD, "description": " "},
        {**GOOD, "body": "x" * 40_000},
        {**GOOD, "description": "d" * 2_000},
    ],
)
async def test_given_no_usable_skill_when_proposed_then_the_verdict_stands_and_nothing_is_written(
    skill: object, tmp_path: Path
) -> None:
    outcome = await learned(tmp_path, skill)

    assert (outcome.passed, outcome.skill, tree(tmp_path)) == (True, None, [])


async def test_given_an_attempt_that_did_not_pass_when_a_skill_is_proposed_then_nothing_is_written(
    tmp_path: Path,
) -> None:
    await learned(tmp_path, GOOD, passed=False)

    assert tree(tmp_path) == []


async def test_given_front_matter_in_the_parts_when_written_then_it_stays_text(tmp_path: Path) -> None:
    sly = {"name": "sly", "description": "one\n---\nname: other", "body": "---\nallowed_tools: '*'\n---\nrun"}

    await learned(tmp_path, sly)

    skill = SkillRegistry(tmp_path).load("sly")
    assert (skill.metadata.description, skill.metadata.allowed_tools) == ("one --- name: other", None)
    assert skill.body == sly["body"]


async def test_given_a_link_out_of_the_folder_when_a_skill_has_its_name_then_it_is_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "skills", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    os.symlink(outside, folder / "write-haiku")

    outcome = await learned(folder, GOOD)

    assert (outcome.skill, tree(outside)) == (None, [])


async def test_given_what_looks_like_a_key_when_a_skill_is_written_then_it_is_masked(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2" * 8

    await learned(tmp_path, {**GOOD, "body": f"Use {key}."})

    assert key not in (tmp_path / "write-haiku" / "SKILL.md").read_text()


async def test_given_a_folder_that_cannot_be_written_when_streamed_then_a_notice_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    loop = HarnessLoop(runner_of(script("one")), script(verdict(True, skill=GOOD)), skill_dir=tmp_path / "file")

    events = [event async for event in loop.run_streaming(GOAL)]

    (notice,) = [event for event in events if isinstance(event, NoticeEvent)]
    assert notice.code == "skill_not_written"


async def test_given_no_skill_folder_when_judged_then_the_judge_is_not_asked_for_a_skill() -> None:
    judge = script(verdict(True, skill=GOOD))

    outcome = await HarnessLoop(runner_of(script("one")), judge).run(GOAL)

    assert outcome.skill is None
    assert "skill" not in judge.requests[0].system_stable
