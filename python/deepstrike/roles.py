"""What sub-agents there are: their roles, and how many may be put to work how deep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from deepstrike.providers.base import LLMProvider

MAX_DEPTH: Final = 3
"""So many levels of sub-agents there are below a root, unless it is said otherwise."""

MAX_CHILDREN: Final = 8
"""So many sub-agents one goal may put to work, unless it is said otherwise."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class AgentRunSpec:
    """A sub-agent: what it is for, and what it may use of its parent's. It never gets more than its parent has.

    role: its name, of letters, digits, `_`, `.`, `-`; at most 64.
    task: what it is to do. Needed by `runner.spawn`; `delegate` gives each sub-agent a task of its own.
    description: what it is good for, told to the model that may delegate to it.
    tools: names of its parent's tools; None means all of them.
    system_prompt: its slot 1; None means a short one that names its role. Its parent's does not reach it.
    provider, extensions: the model that it talks to, and fields for it; None means its parent's.
    max_tokens, max_turns, max_total_tokens, max_cost_usd, timeout_ms: limits as those of `RuntimeOptions`, below what
        its parent grants; None means that alone.

    Raises `ConfigError` that names the field and the remedy.
    """

    role: str
    task: str | None = None
    description: str = ""
    tools: Sequence[str] | None = None
    system_prompt: str | None = None
    provider: LLMProvider | None = None
    extensions: Mapping[str, object] | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    max_total_tokens: int | None = None
    max_cost_usd: float | None = None
    timeout_ms: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.role, str) or not _NAME.fullmatch(self.role):
            raise ConfigError(f"role={self.role!r}: give a name of at most 64 letters, digits, '_', '.', '-'")
        for name, value in (("task", self.task), ("system_prompt", self.system_prompt)):
            if value is not None and not isinstance(value, str):
                raise ConfigError(f"{name} of {self.role!r} must be a text or None, not {type(value).__name__}")
        if self.task is not None and not self.task.strip():
            raise ConfigError(f"the task of {self.role!r} is empty: say what it is to do, or leave it out")
        if not isinstance(self.description, str):
            raise ConfigError(f"description of {self.role!r} must be a text, not {type(self.description).__name__}")
        if self.tools is not None and (isinstance(self.tools, str) or not _are_texts(self.tools)):
            raise ConfigError(f"tools of {self.role!r} must be a list of tool names, or None for all")


@dataclass(frozen=True, init=False)
class SubAgents:
    """The sub-agents that a run may delegate to, and how many how deep: `SubAgents(AgentRunSpec(…), max_depth=2)`.

    Without roles the model names one itself. `max_depth` is the number of levels below the run, `max_children` how many
    sub-agents one goal of an agent may put to work. Raises `ConfigError`.
    """

    roles: tuple[AgentRunSpec, ...]
    max_depth: int
    max_children: int

    def __init__(self, *roles: AgentRunSpec, max_depth: int = MAX_DEPTH, max_children: int = MAX_CHILDREN) -> None:
        if not all(isinstance(role, AgentRunSpec) for role in roles):
            raise ConfigError("sub_agents takes AgentRunSpec(role, …) objects")
        names = [role.role for role in roles]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(f"two sub-agents have the role {twice[0]!r}: give each a name of its own")
        for name, value in (("max_depth", max_depth), ("max_children", max_children)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000:
                raise ConfigError(f"{name} must be a whole number from 1 to 1000, not {value!r}")
        object.__setattr__(self, "roles", roles)
        object.__setattr__(self, "max_depth", max_depth)
        object.__setattr__(self, "max_children", max_children)


def sub_agents_of(given: object) -> SubAgents | None:
    """What `RuntimeOptions.sub_agents` means; None where there are none. Raises `ConfigError`."""
    if given is None or given is False:
        return None
    if given is True:
        return SubAgents()
    if isinstance(given, SubAgents):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str | bytes) and given:
        return SubAgents(*given)
    raise ConfigError(
        "sub_agents must be True, a list of AgentRunSpec(role, …), SubAgents(…), or None, not "
        + ("an empty list" if given == [] else type(given).__name__)
    )


def _are_texts(values: object) -> bool:
    return isinstance(values, Sequence) and all(isinstance(value, str) and value for value in values)
