"""Event loops that come and go, and one that must not be kept waiting."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from itertools import pairwise

from deepstrike import Agent, InMemorySessionLog, ScriptedProvider, TextDelta
from deepstrike.providers.base import Finish, ModelEvent, ModelInfo, ToolCall
from deepstrike.testing import ModelServer
from deepstrike.wire.message import Usage

TWICE = """
import asyncio, logging
logging.getLogger("asyncio").setLevel(logging.ERROR)  # not that a step was slow, but what was left open
from deepstrike import Agent, collect_text

def add(x: int, y: int) -> int:
    return x + y

agent = Agent("openai:gpt-5-mini", tools=[add])
print([asyncio.run(collect_text(agent.run_streaming("What is 17 + 28?"))) for _ in range(2)])
print([agent.run_sync("What is 17 + 28?").text for _ in range(2)])
print([event.type for event in agent.stream_sync("What is 17 + 28?")][-1])

async def inside():
    return agent.run_sync("What is 17 + 28?").text, (await agent.run("What is 17 + 28?")).text

print(asyncio.run(inside()))
"""
GOAL = "some words of a person, of whom one hears now and then. " * 18_000


def test_given_one_agent_when_loops_come_and_go_then_every_run_answers_and_nothing_is_left_open() -> None:
    adds: list[ModelEvent] = [ToolCall("call_1", "add", '{"x": 17, "y": 28}'), Usage(60, 20), Finish("tool_calls")]
    says: list[ModelEvent] = [TextDelta("45"), Usage(90, 2), Finish("stop")]
    with ModelServer([adds, says] * 7) as server:
        env = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-..."}
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", TWICE],
            capture_output=True,
            text=True,
            env=env,
            timeout=90,
        )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['45', '45']\n['45', '45']\ndone\n('45', '45')\n"


async def test_given_eight_megabytes_of_history_when_they_are_compressed_then_the_loop_and_other_threads_go_on() -> (
    None
):
    log = InMemorySessionLog()
    model = ScriptedProvider(["ok"], repeat_last=True, info=ModelInfo("m", window=3_000_000))
    for number in range(8):
        await Agent(model, session_log=log).run(f"{number} {GOAL}", session_id="long")
    over, elsewhere, ticks = threading.Event(), 0, [asyncio.get_running_loop().time()]

    def count() -> None:
        nonlocal elsewhere
        while not over.wait(0.001):
            elsewhere += 1

    async def tick() -> None:
        while not over.is_set():
            await asyncio.sleep(0.02)
            ticks.append(asyncio.get_running_loop().time())

    thread, ticker = threading.Thread(target=count), asyncio.create_task(tick())
    thread.start()
    run = Agent(model, session_log=log, max_tokens=600_000).run_streaming("and now?", session_id="long")
    seen = [event.type async for event in run]
    over.set()
    thread.join()
    await ticker

    assert "context_compressed" in seen
    assert (await run).status == "completed"
    assert elsewhere > 10
    if os.environ.get("DEEPSTRIKE_FULL") == "1":  # by the clock, so only where nothing else runs
        assert max(later - earlier for earlier, later in pairwise(ticks)) < 3 * 0.25
