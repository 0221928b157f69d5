"""The text that offers skills to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepstrike.skills.metadata import estimated_tokens, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.skills.metadata import SkillMetadata

_HEAD: Final = "Skills (instructions for a kind of task; read one with the tool `skill` before you begin such a task):"
_WIDTHS: Final = (1_000, 250, 80, 0)
"""How long a description may be; a narrower one is taken until the text fits."""


def catalogue(skills: Sequence[SkillMetadata], max_tokens: int) -> str:
    """A line for each skill, by name, in at most `max_tokens` as `estimated_tokens` has it; empty without skills.

    Where not all fit, descriptions get shorter, then only names stand there, then the last of them are left out and
    counted in a closing line. The same skills and budget give the same text.
    """
    ordered = sorted(skills, key=lambda skill: skill.name)
    if not ordered:
        return ""
    for width in _WIDTHS:
        lines = [_HEAD, *(_line(skill, width) for skill in ordered)]
        if _fits(lines, max_tokens):
            return "\n".join(lines)
    return _shortened(ordered, max_tokens)


def _shortened(ordered: Sequence[SkillMetadata], max_tokens: int) -> str:
    shown = len(ordered) - 1
    while shown and not _fits(_with_rest(ordered, shown), max_tokens):
        shown = shown * 9 // 10
    lines = _with_rest(ordered, shown)
    return "\n".join(lines) if _fits(lines, max_tokens) else ""


def _with_rest(ordered: Sequence[SkillMetadata], shown: int) -> list[str]:
    rest = len(ordered) - shown
    closing = f"({rest} more skills are not listed here; they can be read by name too)"
    return [_HEAD, *(_line(skill, 0) for skill in ordered[:shown]), closing]


def _line(skill: SkillMetadata, width: int) -> str:
    name = one_line(skill.name)
    if not width:
        return f"- {name}"
    remarks = [f"use when: {_cut(skill.when_to_use, width)}"] if skill.when_to_use is not None else []
    remarks += [f"effort: {skill.effort}"] if skill.effort is not None else []
    tail = f" ({'; '.join(remarks)})" if remarks else ""
    return f"- {name}: {_cut(skill.description, width)}{tail}"


def _cut(text: str, width: int) -> str:
    flat = one_line(text)
    return flat if len(flat) <= width else f"{flat[: width - 1].rstrip()}…"


def _fits(lines: Sequence[str], max_tokens: int) -> bool:
    return estimated_tokens("\n".join(lines)) <= max_tokens
