"""The sub-agents that a run may delegate to, by role."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepstrike.children import DraftedAgent, missing_tools
from deepstrike.execution.unknown import nearest_first
from deepstrike.tries import TriedAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from deepstrike.children import Draft
    from deepstrike.host.agents import Agent
    from deepstrike.roles import AgentRunSpec, SubAgents
    from deepstrike.tries import TriesHarness

MAX_ROLE = 200
"""At most so many characters has a role that the model names itself."""


class Staff:
    """Sub-agents by role (`Delegates`, host/agents.py)."""

    def __init__(
        self,
        sub_agents: SubAgents,
        drafts: Callable[[AgentRunSpec | None], Draft],
        harness: TriesHarness | None = None,
    ) -> None:
        """`drafts` gives what a role would do as a root, None for one that the model names itself.

        With a `harness` each sub-agent's work is judged, and done again until it is good enough.
        """
        self._roles = {spec.role: spec for spec in sub_agents.roles}
        self._drafts = drafts
        self._harness = harness
        self._made: dict[str, Draft] = {}

    def objection(self, args_text: str, tools: Iterable[str]) -> str | None:
        """See `Delegates`."""
        wanted = json.loads(args_text)
        there, role = tuple(tools), wanted.get("role") or ""
        return self._unfit(role) or missing_tools(wanted.get("tools") or (), self._of(role, there))

    def agent(self, role: str) -> Agent:
        """See `Delegates`."""
        spec = self._spec(role)
        key = "" if spec is None else spec.role
        draft = self._made.get(key)
        if draft is None:
            draft = self._made[key] = self._drafts(spec)
        extends = spec is None or (spec.provider is None and spec.extensions is None)
        kind = DraftedAgent(draft, inherits=True, extends=extends, says="" if spec is not None else role)
        return kind if self._harness is None else TriedAgent(kind, self._harness)

    def _unfit(self, role: str) -> str | None:
        if not self._roles:
            return f"a role has at most {MAX_ROLE} characters" if len(role) > MAX_ROLE else None
        if role in self._roles or (not role and len(self._roles) == 1):
            return None
        said = f"there is no role {role[:100]!r}" if role else "say which role"
        return f"{said}; available: {', '.join(nearest_first(role, self._roles))}"

    def _spec(self, role: str) -> AgentRunSpec | None:
        """The one role there is needs no name."""
        return self._roles.get(role) or next(iter(self._roles.values()), None)

    def _of(self, role: str, there: tuple[str, ...]) -> Iterable[str]:
        """The tools that a sub-agent of this role can have."""
        spec = self._spec(role)
        return there if spec is None or spec.tools is None else [name for name in there if name in spec.tools]
