"""Where an agent looks things up: sources of one's own, and folders of files."""

from __future__ import annotations

from deepstrike.knowledge.base import KnowledgeSource
from deepstrike.knowledge.folder import FolderKnowledge
from deepstrike.knowledge.once import Once

__all__ = ["FolderKnowledge", "KnowledgeSource", "Once"]
