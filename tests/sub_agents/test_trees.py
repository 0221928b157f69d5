"""Random trees of agents: whatever they do, together they stay within the limits of their root.

`DEEPSTRIKE_FULL=1` grows 10,000 of them, otherwise 150; `DEEPSTRIKE_SEED` says which.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator

from families import runner_with

from deepstrike import InMemorySessionLog, ModelRequest, Run, RunFailed, RunResult, ToolError, tool
from deepstrike.kernel import Kernel, decode_record
from deepstrike.providers.base import Finish, ModelEvent, ModelInfo, Provider, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.event import Begun, Settled, Started
from deepstrike.wire.message import Usage
from deepstrike.wire.policy import Price

TREES = 10_000 if os.environ.get("DEEPSTRIKE_FULL") else 150
SEED = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
PRICE = Price(input=1_000_000, output=2_000_000, cached=100_000, cache_write=1_000_000)


@tool(effect="read")
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


@tool(effect="read")
async def fail() -> str:
    """Fail."""
    raise ToolError("no")


@tool(effect="read")
async def wait() -> str:
    """Wait a little."""
    await asyncio.sleep(0)
    return "waited"


class Whims(Provider):
    """A model that does what dice say, and reports no more input than the kernel expects: its counts are exact."""

    dialect = "whims"

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.info = ModelInfo("whims", price=PRICE)
        self.used: list[Usage] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Delegate, call tools, or come to an end."""
        for _ in range(self.dice.randrange(3)):
            await asyncio.sleep(0)
        most = request.max_output
        length = len(request.system_stable) + sum(len(repr(turn)) for turn in request.turns)
        output = self.dice.randrange(1, 60)
        cut = most is not None and output > most
        usage = Usage(length // 60, min(output, most) if most is not None else output)
        self.used.append(usage)
        yield usage
        calls = [] if cut else self._calls(request)
        for call in calls:
            yield call
        if not calls:
            yield TextDelta("done")
        yield Finish("length" if cut else "tool_calls" if calls else "stop")

    def _calls(self, request: ModelRequest) -> list[ModelEvent]:
        names = [spec.name for spec in request.tools]
        if self.dice.random() < 0.35:
            return []
        return [self._call(names, number) for number in range(self.dice.randrange(1, 5))]

    def _call(self, names: list[str], number: int) -> ToolCall:
        name = self.dice.choice([*names, "delegate", "delegate"])
        arguments: dict[str, object] = {"x": self.dice.randrange(9), "y": number}
        if name == "delegate":
            arguments = {"task": f"task {self.dice.randrange(1000)}"}
            if self.dice.random() < 0.3:
                arguments["tools"] = self.dice.sample(["add", "fail", "wait"], self.dice.randrange(3))
        elif name == "recall":
            arguments = {"ref": "0"}
        elif name == "update_plan":
            arguments = {"steps": []}
        return ToolCall(f"c{number}", name, json.dumps(arguments))


async def test_whatever_agents_do_together_they_stay_within_the_limits_of_their_root() -> None:
    print(f"seed {SEED}, {TREES} trees")
    sizes = [await one_tree(random.Random(f"{SEED}/{number}"), number) for number in range(TREES)]
    assert max(sizes) > 5, "no tree had many agents"


async def one_tree(dice: random.Random, number: int) -> int:
    """Grow a tree; how many agents it had."""
    log, model = InMemorySessionLog(), Whims(dice)
    turns, tokens = dice.randrange(2, 40), dice.choice([None, dice.randrange(500, 20_000)])
    runner = runner_with(
        model,
        add,
        fail,
        wait,
        log=log,
        max_turns=turns,
        max_total_tokens=tokens,
        max_parallel_tools=dice.randrange(1, 6),
    )
    result = await asyncio.wait_for(_ended(runner.run("go", session_id="s")), 60)
    used = sum(each.input + each.output for each in model.used)
    told = f"tree {number} of seed {SEED}: {result}"
    assert len(model.used) <= turns, told
    assert tokens is None or used <= tokens, told
    assert (result.iterations, result.total_tokens) == (len(model.used), used), told
    assert len(asyncio.all_tasks()) <= 2, told
    return await check_logs(log, told)


async def _ended(run: Run) -> RunResult:
    """The result, also of a run that has failed."""
    try:
        return await run
    except RunFailed as failed:
        return failed.result


async def check_logs(log: InMemorySessionLog, told: str) -> int:
    """Each session folds, has only tools of its parent's, and spent what its parent's log says; how many there are."""
    sessions = await log.sessions()
    began: dict[str, Started] = {}
    spent: dict[str, tuple[int, int]] = {}
    for session in sessions:
        records = await log.read(session)
        events = [decode_record(line).event for line in records]
        assert isinstance(events[0], Started)
        began[session] = events[0]
        names = {event.call: event.effect for event in events if isinstance(event, Begun)}
        for event in events:
            if isinstance(event, Settled) and event.spent is not None:
                usage = event.spent.usage
                spent[f"{session}/{names[event.call]}"] = (event.spent.turns, usage.input + usage.output)
        outcome = Kernel.replay(records).outcome()
        assert outcome is not None, told
    for session in sessions:
        parent = began[session].config.agents.parent
        if parent is not None:
            above = {tool.name for tool in began[parent.session].config.tools}
            assert {tool.name for tool in began[session].config.tools} <= above, told
            outcome = Kernel.replay(await log.read(session)).outcome()
            assert outcome is not None
            assert spent[session] == (outcome.turns, outcome.input_tokens + outcome.output_tokens), told
    return len(sessions)
