"""A tool, a model, a streamed answer. The embedded demo model needs no key; with one, use OpenAIProvider instead."""

import asyncio

from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.demo import DemoProvider


@tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


async def main() -> None:
    """Ask one question and show what happens."""
    runner = RuntimeRunner(RuntimeOptions(provider=DemoProvider(), execution_plane=LocalExecutionPlane().register(add)))
    async for event in runner.run_streaming("What is 17 + 28?"):
        if event.type == "text_delta":
            print(event.delta, end="", flush=True)
        elif event.type == "tool_call":
            print(f"[{event.name} {dict(event.arguments)}]")
        elif event.type == "done":
            print(f"\n{event.status} in {event.iterations} turns")


if __name__ == "__main__":
    asyncio.run(main())
