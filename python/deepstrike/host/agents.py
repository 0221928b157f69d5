"""Sub-agents as a run sees them: how they are put to work, what they are handed down, what comes back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from deepstrike.errors import ToolError
from deepstrike.host.exchange import question_text
from deepstrike.wire.agents import Spent
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from deepstrike.governance.policy import Governance
    from deepstrike.host.crew import Means
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.requests import Given
    from deepstrike.host.secrecy import Vault
    from deepstrike.sessions.base import SessionLog
    from deepstrike.stream import PendingRequest, RunResult
    from deepstrike.wire.agents import Grant
    from deepstrike.wire.policy import Config

_MICRO = 1_000_000
_NO_NAME = re.compile(r"[^A-Za-z0-9_.]+")


@dataclass(frozen=True, slots=True)
class AgentCall:
    """What puts a sub-agent to work, as the log of its parent has it: the same after a crash.

    `session_id` is that of its own session, `names` are its part of the path. `tools` limits it to some of those that
    it would have, None does not. `answers` are all that its parent was given for its questions so far, by request id.
    """

    session_id: str
    names: tuple[str, ...]
    task: str
    tools: tuple[str, ...] | None
    grant: Grant
    answers: Mapping[str, Given]


class Child(Protocol):
    """A sub-agent at work."""

    @property
    def session_id(self) -> str:
        """Its session."""

    @property
    def result(self) -> RunResult | None:
        """What it came to, also when it was cancelled; None before, and where it had not begun."""

    def interrupt(self, reason: str) -> None:
        """End it `user_abort`, from any thread."""

    async def perform(self, outbox: Outbox) -> RunResult:
        """Pursue its task, or go on with it where its session's log ends. Cancelling leaves a valid log."""


class Agent(Protocol):
    """A kind of sub-agent, ready to be put to work."""

    def child(self, household: Household, call: AgentCall) -> Child:
        """One of them, for this call. Nothing begins yet."""


class Delegates(Protocol):
    """The sub-agents that `delegate` puts to work."""

    def objection(self, args_text: str, tools: Iterable[str]) -> str | None:
        """What is wrong with valid arguments, for the model: an unknown role, or a tool that is none of `tools`."""

    def agent(self, role: str) -> Agent:
        """The kind of this role, as `objection` passed it; "" where none was named."""


@dataclass(frozen=True, slots=True)
class Household:
    """What a run hands down to its sub-agents.

    `vault` keeps what they withhold, `perform` carries one out where an interrupt finds it.
    """

    config: Config
    log: SessionLog
    governance: Governance | None
    means: Means
    vault: Vault
    perform: Callable[[Child, Outbox], Awaitable[RunResult]]

    @property
    def path(self) -> tuple[str, ...]:
        """The agents from the root down to this run."""
        return path_of(self.config)


def path_of(config: Config) -> tuple[str, ...]:
    """The agents from the root down to the run of this configuration, () for a root."""
    parent = config.agents.parent
    return () if parent is None else parent.path


def child_session(session_id: str, effect: int) -> str:
    """The session of the sub-agent that a call puts to work. The effect is the call's from its first beginning on."""
    return f"{session_id}/{effect}"


def child_name(role: str, effect: int) -> str:
    """The sub-agent's part of the path: unique among those of its parent, and telling for people."""
    return f"{_NO_NAME.sub('_', role)[:32].strip('_') or 'agent'}-{effect}"


def spent_by(result: RunResult) -> Spent:
    """What a sub-agent has used so far, over all its resumes."""
    usage, cost = result.usage, result.usage.cost_usd
    tokens = Usage(
        usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.reasoning_tokens
    )
    return Spent(result.iterations, tokens, 0 if cost is None else round(cost * _MICRO), cost is None)


def told_to_parent(result: RunResult) -> str:
    """What the parent's model reads of a sub-agent that has done its task. Raises `ToolError` where it has not."""
    if result.status == "completed":
        return result.text or "(the sub-agent is done and said nothing)"
    why = f"the sub-agent did not complete its task ({result.status})"
    if result.error:
        why += f": {result.error}"
    raise ToolError(f"{why}\nIts last words: {result.text}" if result.text.strip() else why)


def questions_text(pending: Iterable[PendingRequest]) -> str:
    """The open requests of a sub-agent as its parent's log keeps them: without arguments where they are too large."""
    asked = [msgspec.to_builtins(request) for request in pending]
    try:
        return question_text({"requests": asked})
    except ValueError:
        return question_text({"requests": [{**each, "arguments": {}, "payload": None} for each in asked]})
