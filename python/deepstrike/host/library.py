"""What a run can read beside its tools: skills, a knowledge source, a memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deepstrike.errors import DeepStrikeError
from deepstrike.host.steady import NoAnswer, apart
from deepstrike.tools.threads import run_in_thread
from deepstrike.wire.policy import Skill, Sources

if TYPE_CHECKING:
    from collections.abc import Collection

    from deepstrike.knowledge.once import Once
    from deepstrike.memory.base import DreamStore
    from deepstrike.skills.metadata import SkillMetadata
    from deepstrike.skills.registry import SkillRegistry

# How long files may take to be read.
FILES_SECONDS = 10.0

# The catalogue of skills has a twentieth of the window, and never more than this many tokens.
_SHARE = 20
_MOST = 4_000


@dataclass(frozen=True, slots=True)
class Library:
    """The sources of a run; None where it has none. `offered` are the skills as they lay on the disk when it began.

    `agent_id` says whose memory it is.
    """

    skills: SkillRegistry | None = None
    knowledge: Once | None = None
    memory: DreamStore | None = None
    agent_id: str = ""
    offered: tuple[SkillMetadata, ...] = ()

    async def opened(self) -> Library:
        """The same with the skills that are there now.

        Raises `DeepStrikeError` with code `skill_dir` where their folder does not answer.
        """
        if self.skills is None:
            return self
        try:
            found = await apart(run_in_thread(self.skills.scan), FILES_SECONDS)
        except NoAnswer as error:
            raise DeepStrikeError(
                f"the skills could not be read within {FILES_SECONDS:g} s: look at the disk, or leave skill_dir out",
                code="skill_dir",
            ) from error
        return replace(self, offered=tuple(found))

    def catalogue(self, window: int) -> tuple[str, ...]:
        """The block that offers the skills, in at most a twentieth of the window and 4,000 tokens; none without any."""
        if not self.offered:
            return ()
        from deepstrike.skills.catalogue import catalogue

        text = catalogue(self.offered, min(window // _SHARE, _MOST))
        return (text,) if text else ()

    def sources(self, tools: Collection[str]) -> Sources:
        """The same for the kernel, for a run that has these tools."""
        skills = () if self.skills is None else self._narrowing(self.skills, tools)
        return Sources(skills, knowledge=self.knowledge is not None, memory=self.memory is not None)

    def _narrowing(self, registry: SkillRegistry, tools: Collection[str]) -> tuple[Skill, ...]:
        from deepstrike.skills.allowed import globs, unknown

        registry.report({skill.name: unknown(skill.allowed_tools, tools) for skill in self.offered})
        return tuple(Skill(skill.name, globs(skill.allowed_tools)) for skill in self.offered)
