"""A skill that a judge proposes, written where skills are looked for, and nowhere else."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import unicodedata
from typing import TYPE_CHECKING, Final

import yaml

from deepstrike.secrets.shapes import masked
from deepstrike.skills.check import MAX_DESCRIPTION, check
from deepstrike.skills.metadata import MAX_NAME, one_line, same_name
from deepstrike.skills.places import check_path
from deepstrike.skills.registry import SkillRegistry
from deepstrike.tools.rooted import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from deepstrike.harness.judgement import Draft

MAX_BODY: Final = 32_000
"""Characters of a skill's instructions."""

_GAP: Final = re.compile(r"[^\w]+|_+")


class NotWritten(Exception):
    """Why a proposed skill was left alone; nothing was written."""


def write_skill(skill_dir: Path, draft: Draft) -> Path:
    """Write `draft` as NAME/SKILL.md below `skill_dir`, which is made if it is not there; gives the file.

    NAME is made of the proposed name: lowercase letters, digits and single hyphens, so that it is no path. The skill is
    checked against the open format beside its place and then moved there whole. Raises `NotWritten` for a skill that
    is not valid, is longer than `MAX_BODY`, or has the name of something that is there already; `OSError`.
    """
    name = clean_name(draft.name)
    text = _text(name, draft)
    skill_dir.mkdir(parents=True, exist_ok=True)
    _require_free(skill_dir, name)
    # Hidden, so that nobody takes it for a skill, and in the same folder, so that moving it is one step.
    workshop = skill_dir / f".deepstrike-{secrets.token_hex(8)}"
    workshop.mkdir()
    try:
        (workshop / name).mkdir()
        (workshop / name / "SKILL.md").write_text(text, encoding="utf-8", newline="\n")
        errors = [found.message for found in check(workshop).findings if found.level == "error"]
        if errors:
            raise NotWritten(f"it is no valid skill: {errors[0]}")
        _move(workshop / name, skill_dir / name)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return skill_dir / name / "SKILL.md"


def clean_name(proposed: str) -> str:
    """A skill's name made of a proposed one. Raises `NotWritten` where nothing is left of it, or a reserved word."""
    plain = unicodedata.normalize("NFKC", proposed[: 4 * MAX_NAME]).casefold()
    words = "".join(each if each.isalnum() else " " for each in _GAP.sub(" ", plain)).split()
    name = "-".join(words)[:MAX_NAME].strip("-")
    if not name:
        raise NotWritten("its name has no letters")
    try:
        check_path(name)
    except Refused as refused:
        raise NotWritten(f"its name is {name!r}: {refused}") from refused
    return name


def _text(name: str, draft: Draft) -> str:
    description, body = one_line(masked(draft.description)), masked(draft.body).strip()
    if not description or not body:
        raise NotWritten("it has no description or no instructions")
    if len(description) > MAX_DESCRIPTION or len(body) > MAX_BODY:
        raise NotWritten(f"its description has more than {MAX_DESCRIPTION} characters or its text more than {MAX_BODY}")
    fields = {"name": name, "description": description}
    if draft.when_to_use.strip():
        fields["when_to_use"] = one_line(masked(draft.when_to_use))[:MAX_DESCRIPTION]
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=10**6)
    return f"---\n{front}---\n{body}\n"


def _require_free(skill_dir: Path, name: str) -> None:
    taken = {same_name(path.name.removesuffix(".md")) for path in skill_dir.iterdir()}
    taken |= {same_name(skill.name) for skill in SkillRegistry(skill_dir).scan()}
    if same_name(name) in taken:
        raise NotWritten(f"there is a skill {name!r} already")


def _move(made: Path, place: Path) -> None:
    """A rename fails where a file or a folder that is not empty came to stand meanwhile."""
    try:
        os.rename(made, place)
    except OSError as error:
        raise NotWritten(f"{place.name!r} could not be put in its place: {error.strerror or error}") from error
