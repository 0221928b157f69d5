"""Sub-agents: what they are, and agents as tools of other agents."""

from __future__ import annotations

from deepstrike.agents.tool import as_tool
from deepstrike.roles import AgentRunSpec, SubAgents

__all__ = ["AgentRunSpec", "SubAgents", "as_tool"]
