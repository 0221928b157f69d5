"""A model that never stops asking: what a run says at its limit, and when it is interrupted."""

import asyncio
from collections.abc import AsyncIterator

from deepstrike import LocalExecutionPlane, ModelRequest, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.base import Finish, ModelEvent, ToolCall


@tool
async def wait_for_news() -> str:
    """Wait a little for news."""
    await asyncio.sleep(0)
    return "nothing new"


class Restless:
    """Asks for the same tool for ever."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ToolCall("", "wait_for_news", "{}")
        yield Finish("tool_calls")


async def main() -> None:
    """Run into the limit, then interrupt."""
    plane = LocalExecutionPlane().register(wait_for_news)
    runner = RuntimeRunner(RuntimeOptions(provider=Restless(), execution_plane=plane, max_turns=3))
    result = await runner.run("Any news?")
    print(f"{result.status} after {result.iterations} turns")

    patient = RuntimeRunner(RuntimeOptions(provider=Restless(), execution_plane=plane, max_turns=1_000_000))
    async for event in patient.run_streaming("Any news?"):
        if event.type == "tool_result":
            patient.interrupt()
        elif event.type == "done":
            print(event.status)


if __name__ == "__main__":
    asyncio.run(main())
