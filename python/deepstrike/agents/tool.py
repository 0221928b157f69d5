"""An agent as a tool of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepstrike.children import DraftedAgent
from deepstrike.errors import ConfigError
from deepstrike.options import RuntimeOptions
from deepstrike.runner import RuntimeRunner
from deepstrike.tools.decorator import check_name
from deepstrike.tools.definition import Tool

if TYPE_CHECKING:
    from deepstrike.tools.context import ToolContext

_TASK: Final = '{"type":"object","properties":{"task":{"type":"string","minLength":1}},"required":["task"]}'


def as_tool(agent: RuntimeOptions | RuntimeRunner, name: str, description: str) -> Tool[..., object]:
    """A tool whose call puts this agent to work as a sub-agent of the run that calls it.

    It has a model, tools, system prompt and output type of its own. All else is the calling run's: the log, in which it
    gets a session of its own, governance, what is left of the budgets, deps, and whoever answers questions, where it
    names nobody itself. Its own limits hold within what it is granted. It is called with a `task`, and its answer is
    the result. After a crash the call goes on where the agent's session ends. What the agent's plane opens is closed by
    `aclose()` of its own runner.

    Raises `ConfigError` for what is no agent, and for a name or description that is none.
    """
    if isinstance(agent, RuntimeOptions):
        agent = RuntimeRunner(agent)
    if not isinstance(agent, RuntimeRunner):
        raise ConfigError(f"as_tool takes RuntimeOptions(…) or a RuntimeRunner, not {type(agent).__name__}")
    if not isinstance(description, str) or not description.strip():
        raise ConfigError(f"description={description!r}: say what the agent is good for, so that a model may choose it")
    check_name(name)
    drafted = DraftedAgent(agent.draft)

    async def work(task: str, context: ToolContext) -> str:
        return await context._hire(drafted, name, task)

    return Tool(function=work, name=name, description=description, effect="idempotent", parameters=_TASK, agent=True)
