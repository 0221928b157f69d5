"""Skills: instructions in a folder, offered to the model by a line each and read in full when it asks for one."""

from __future__ import annotations

from deepstrike.skills.metadata import SkillMetadata
from deepstrike.skills.registry import Skill, SkillProblem, SkillRegistry

__all__ = ["Skill", "SkillMetadata", "SkillProblem", "SkillRegistry"]
