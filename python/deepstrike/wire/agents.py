"""Sub-agents: who may have them, what they are granted, and what they have spent."""

from __future__ import annotations

from deepstrike.wire.message import Usage, Wire


class Parent(Wire, frozen=True):
    """Whose sub-agent a session is: of the run of `session`; `path` names the agents from the root down to it."""

    session: str
    path: tuple[str, ...]


class Agents(Wire, frozen=True):
    """What a run may do with sub-agents, and whose it is itself (`parent`, None for a root).

    `delegate`: the meta-tool is there. `depth` is how many levels there may be below this one, `children` how many
    sub-agents one goal may put to work.
    """

    delegate: bool = False
    depth: int = 0
    children: int = 0
    parent: Parent | None = None


class Grant(Wire, frozen=True):
    """The part of its parent's limits that a sub-agent may use up, over all its resumes; None where there is no limit.

    `turns` are model calls, `cost` micro-dollars, `time_ms` active milliseconds. All count its own sub-agents too.
    `only` are globs of the only tools that it may be left of its parent's, by the skill that is active there.
    """

    turns: int
    tokens: int | None = None
    cost: int | None = None
    time_ms: int | None = None
    only: tuple[str, ...] = ()


class Spent(Wire, frozen=True):
    """What a sub-agent has used, its own sub-agents included. `unpriced`: a price was not known, `cost` is the rest."""

    turns: int
    usage: Usage
    cost: int = 0
    unpriced: bool = False
