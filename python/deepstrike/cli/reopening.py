"""What a session needs before it goes on: looked at before anything is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.cli.place import fold, records_of
from deepstrike.cli.safe import one_line
from deepstrike.errors import ConfigError
from deepstrike.host.requests import open_requests
from deepstrike.providers.choice import DEMO
from deepstrike.replay.story import Remark, story_of
from deepstrike.wire.event import Resumed
from deepstrike.wire.message import Text
from deepstrike.wire.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Collection

    from deepstrike.cli.place import Log
    from deepstrike.providers.choice import Choice
    from deepstrike.replay.story import GoalStory


@dataclass(frozen=True, slots=True)
class Standing:
    """How the last goal stands.

    `completed`, `waiting`: it has ended well, it waits for answers. `answer` is what the model said last. `open_tools`
    are the tools that the goal had and whose calls have no result yet. `governed`: it had a policy. `delegates`: it had
    sub-agents to delegate to. `model` is the one that it went on with last, "" where no goal was begun.
    """

    completed: bool
    waiting: bool
    answer: str
    open_tools: tuple[str, ...]
    governed: bool = False
    delegates: bool = False
    model: str = ""


async def standing_of(log: Log, session_id: str, path: str | None) -> Standing:
    """Read how a session stands. Raises `UnknownSession`, `CorruptLog` or another `SessionError`."""
    records = await records_of(log, session_id, path)
    kernel = fold(session_id, records)
    goals = story_of(records).goals
    if not goals:
        return Standing(completed=False, waiting=False, answer="", open_tools=())
    outcome = kernel.outcome()
    completed = outcome is not None and outcome.status == "completed"
    return Standing(
        completed=completed,
        waiting=bool(open_requests(kernel.pending())),
        answer=_answer(goals[-1]),
        open_tools=() if completed else _open_tools(goals[-1]),
        governed=not completed and goals[-1].started.config.policy != Policy(),
        delegates=goals[-1].started.config.agents.delegate,
        model=_model(goals[-1]),
    )


def require_tools(standing: Standing, session_id: str, offered: Collection[str]) -> None:
    """Raises `ConfigError` where a call is open whose tool is not offered: going on would make it a failed call."""
    missing = [name for name in standing.open_tools if name not in offered]
    if missing:
        raise ConfigError(
            f"session {session_id!r} has an open call of {', '.join(missing)}, which no --tools gives; nothing was "
            "recorded. Give the same --tools MODULE:NAME as before, or --without-tools to let such calls fail"
        )


def require_policy(standing: Standing, session_id: str, policy: str | None) -> None:
    """Raises `ConfigError` where the goal had a policy and goes on without one: every call would be allowed."""
    if standing.governed and policy is None:
        raise ConfigError(
            f"session {session_id!r} was begun under a policy, and no --policy is given; nothing was recorded. Give "
            "--policy FILE, or --without-policy to let every call run"
        )


def require_model(standing: Standing, session_id: str, choice: Choice, model: str | None) -> None:
    """Raises `ConfigError` where a session of another model would go on with the demo model, which nobody named."""
    if choice.name == DEMO and model is None and standing.model not in ("", DEMO):
        raise ConfigError(
            f"session {session_id!r} went on with the model {one_line(standing.model, 80)!r}, and {choice.why}: the "
            "demo model would end it. Nothing was recorded. Set the key of its provider, or name a model with --model "
            "VENDOR:NAME"
        )


def _model(goal: GoalStory) -> str:
    """That of the last options."""
    resumed = [entry.event for entry in goal.entries if isinstance(entry, Remark) and isinstance(entry.event, Resumed)]
    return (resumed[-1] if resumed else goal.started).config.model.id


def _answer(goal: GoalStory) -> str:
    if not goal.turns:
        return ""
    return "".join(part.text for part in goal.turns[-1].reply.parts if isinstance(part, Text))


def _open_tools(goal: GoalStory) -> tuple[str, ...]:
    had = {tool.name for tool in goal.started.config.tools}
    names = (call.name for turn in goal.turns for call in turn.calls if call.result is None)
    return tuple(dict.fromkeys(name for name in names if name in had))
