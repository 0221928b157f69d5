"""What a run is configured with, as the kernel sees it."""

from __future__ import annotations

from deepstrike.wire.agents import Agents
from deepstrike.wire.message import ToolSpec, Wire


class Price(Wire, frozen=True):
    """Micro-dollars for a million tokens."""

    input: int
    output: int
    cached: int
    cache_write: int


class Model(Wire, frozen=True):
    """The model a run talks to. The price is None where it is not known.

    `cache_ms` is how long its provider's cache keeps a prompt that is not asked again.
    """

    id: str
    price: Price | None = None
    cache_ms: int = 300_000


class Limits(Wire, frozen=True):
    """Per goal, over all its resumes. `timeout_ms` counts active time; `max_cost` is micro-dollars.

    `window` is the context window in tokens, `reserve` the part of it kept for the answer, `parallel` the
    number of tools that may run at once.
    """

    max_turns: int
    window: int
    reserve: int
    parallel: int
    max_total_tokens: int | None = None
    max_cost: int | None = None
    timeout_ms: int | None = None


class Rule(Wire, frozen=True):
    """What `action` (allow, deny, ask) is taken on the tools whose names the glob fits. Deny beats ask beats allow."""

    pattern: str
    action: str
    reason: str = ""


class Rate(Wire, frozen=True):
    """At most `max_calls` allowed calls of the tools that fit, together, in any `window_ms`."""

    pattern: str
    max_calls: int
    window_ms: int


class Constraint(Wire, frozen=True):
    """What the validated arguments of the tools that fit must be: `schema` is JSON schema text."""

    pattern: str
    schema: str


class Permission(Wire, frozen=True):
    """A grant (`allow`, or `ask` for one to be confirmed) or a revocation (`deny`); `*` is any tool or action."""

    tool: str
    action: str
    verdict: str
    note: str = ""


class Permissions(Wire, frozen=True):
    """The grants of a permission manager; `mode` (default, plan, auto) holds where there is none."""

    mode: str
    entries: tuple[Permission, ...] = ()


class Policy(Wire, frozen=True):
    """What governance decides by. Without anything in it every call may run.

    `default` holds for a tool that no rule fits. `audit`: the trail of a call names every stage, also those that had
    nothing to say.
    """

    default: str = "allow"
    rules: tuple[Rule, ...] = ()
    blocked: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    permissions: tuple[Permissions, ...] = ()
    audit: bool = False


class Attended(Wire, frozen=True):
    """Which questions somebody in this process answers; a call that waits for another one parks the run."""

    approvals: bool = False
    suspensions: bool = False


class Skill(Wire, frozen=True):
    """A skill that the model can load: while it is active only tools that one of the globs fits may run.

    Without globs the tools are as they are.
    """

    name: str
    allowed_tools: tuple[str, ...] = ()


class Sources(Wire, frozen=True):
    """What a run can draw on beside its tools, each by a tool of the kernel's own."""

    skills: tuple[Skill, ...] = ()
    knowledge: bool = False
    memory: bool = False


class Config(Wire, frozen=True):
    """All that the prompt and the decisions are made of, apart from the goal.

    With `summaries` a model writes a summary of the turns that leave the prompt.
    """

    session: str
    system: str
    preload: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    policy: Policy
    limits: Limits
    model: Model
    placement: str = "frozen"
    attended: Attended = Attended()
    agents: Agents = Agents()
    sources: Sources = Sources()
    summaries: bool = False
