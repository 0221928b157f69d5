"""A process that delegates payments and is killed at its n-th step: `python victim.py FOLDER STEP`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from deepstrike import FileSessionLog, LocalExecutionPlane, RunResult, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.base import Finish, ModelEvent, ModelInfo, ModelRequest, Provider, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.message import ResultBlock, Text, Usage, UserBlock

SESSION = "bills"
PAYEES = ("ann", "bob", "eve")


class Steps:
    """Dies at a step."""

    def __init__(self, die_at: int) -> None:
        self.left = die_at

    def pass_by(self) -> None:
        """One step more."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingLog(FileSessionLog):
    """A log whose process may die before and behind each append."""

    steps: Steps

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        self.steps.pass_by()
        last = await super().append(session_id, records, expected_seq, owner=owner)
        self.steps.pass_by()
        return last


class Clerk(Provider):
    """A model that goes by what it is asked alone: any process can go on with it.

    The root delegates two payments and one that is delegated further; whoever is to pay somebody pays.
    """

    dialect = "clerk"
    info = ModelInfo("clerk")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next move."""
        said = self._next(*_read(request))
        yield Usage(10, 1)
        for event in said:
            yield event
        yield Finish("tool_calls" if isinstance(said[0], ToolCall) else "stop")

    def _next(self, goal: str, results: list[str]) -> list[ModelEvent]:
        if results:
            return [TextDelta(" | ".join(results))]
        if goal == "pay all":
            tasks = [f"pay {PAYEES[0]}", f"pay {PAYEES[1]}", f"have {PAYEES[2]} paid"]
            return [ToolCall(f"d{n}", "delegate", f'{{"task":"{task}"}}') for n, task in enumerate(tasks)]
        if goal.startswith("have "):
            return [ToolCall("d", "delegate", f'{{"task":"pay {goal.split()[1]}"}}')]
        return [ToolCall("p", "pay", f'{{"to":"{goal.split()[1]}"}}')]


def _read(request: ModelRequest) -> tuple[str, list[str]]:
    first = request.turns[0]
    assert isinstance(first, UserBlock)
    goal = next(part.text for part in first.parts if isinstance(part, Text))
    parts = (part for turn in request.turns if isinstance(turn, ResultBlock) for part in turn.parts)
    return goal, [part.text for part in parts if isinstance(part, Text)]


async def live(folder: Path, die_at: int) -> RunResult:
    """Begin, or go on, until the end or death."""
    steps = Steps(die_at)

    @tool(effect="once")
    async def pay(to: str) -> str:
        """Pay somebody."""
        steps.pass_by()
        with (folder / "paid").open("a") as paid:
            paid.write(f"{to}\n")
        steps.pass_by()
        return f"paid {to}"

    log = DyingLog(folder / "log")
    log.steps = steps
    plane = LocalExecutionPlane().register(pay)
    runner = RuntimeRunner(RuntimeOptions(provider=Clerk(), session_log=log, execution_plane=plane, sub_agents=True))
    begun = SESSION in await log.sessions()
    return await (runner.resume(SESSION) if begun else runner.run("pay all", session_id=SESSION))


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
